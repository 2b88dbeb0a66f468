#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace mpi4dl {

/// Makes the folders of a new data set: a folder for each class in train/ and in val/. Throws
/// UsageError where `out` holds something already or cannot be made.
void make_class_folders(const std::string& out, const std::vector<std::string>& classes);

/// Returns the folder of a class in a part, "train" or "val".
std::filesystem::path class_folder(const std::string& out, const std::string& part,
                                   const std::string& name);

/// Throws UsageError where there is something in the folder `out`.
void check_new_folder(const std::string& out);

/// Makes a folder and those around it. Throws UsageError with the reason where that fails.
void make_folder(const std::filesystem::path& folder);

}  // namespace mpi4dl
