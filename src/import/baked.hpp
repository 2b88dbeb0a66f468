#pragma once

#include <map>
#include <string>

#include "import/translation.hpp"

namespace mpi4dl {

// What Python computed from the size of the exported image is a number in the file, as what stands
// in its code is. It is right for that size alone; which of the two a number is can only be
// guessed.

/// Throws where the image has another size than when the file was written, unless the number was
/// given to a module that knows no sizes.
void refuse_baked(Translation& call, const std::string& what);

/// Throws where the kernel of a pool is as large as a map was, which F.avg_pool2d(x, x.shape[2:])
/// makes it; a small kernel of `usual` pools may be that by chance.
void check_kernel(Translation& call, const View& input, const Extents& kernel, bool usual);
/// Throws where the result of an adaptive pool is as large as a map was.
void check_pooled_size(Translation& call, const View& input, const Extents& size);
/// Throws where nothing was padded at the exported size, and another may need some: a length that
/// is rounded to multiples of all strides has another rest now.
void check_no_padding(Translation& call, const View& input);

/// Returns by what a value is read in strides, for each that is.
std::map<std::string, int64_t> strides_of_readers(const Program& program);
/// Returns by how much an operator makes the image smaller.
int64_t stride_of(const Operator& op);

}  // namespace mpi4dl
