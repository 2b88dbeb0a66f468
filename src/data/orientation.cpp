#include "data/orientation.hpp"

#include <array>

namespace mpi4dl {

Orientation Orientation::from_exif(int number) {
  // Where the stored first row and first column are shown: top left, top right, bottom right, ...
  static constexpr std::array<Orientation, 8> kAll{{{false, false, false},
                                                    {false, false, true},
                                                    {false, true, true},
                                                    {false, true, false},
                                                    {true, false, false},
                                                    {true, true, false},
                                                    {true, true, true},
                                                    {true, false, true}}};
  return number >= 1 && number <= 8 ? kAll[number - 1] : kAll[0];
}

Extents Orientation::shown(const Extents& stored) const {
  return swapped ? Extents{stored[1], stored[0]} : stored;
}

}  // namespace mpi4dl
