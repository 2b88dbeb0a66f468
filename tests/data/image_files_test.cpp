#include "data/image_files.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <openslide.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.hpp"
#include "support/dice.hpp"
#include "support/test_images.hpp"

namespace mpi4dl {
namespace {

using testing::make_picture;
using testing::Picture;
using testing::save_picture;
using testing::SaveOptions;
using testing::ScratchFolder;

ImageFiles files(const std::vector<std::string>& paths, const ViewOptions& options = {}) {
  std::vector<ListedImage> images;
  for (const std::string& path : paths) images.push_back({.path = path, .label = 0});
  return {images, options};
}

at::Tensor read_part(const Dataset& data, int64_t sample, const Interval& rows,
                     const Interval& cols) {
  return data.read(sample, {{0, 1}, {0, 3}, rows, cols});
}

at::Tensor read_whole(const Dataset& data, int64_t sample = 0) {
  const Extents size = data.extent(sample);
  return read_part(data, sample, {0, size[0]}, {0, size[1]});
}

/// Converts back to bytes [3, rows, cols].
at::Tensor bytes_of(const at::Tensor& image) {
  return image.mul(0.5).add(0.5).mul(255).round().to(at::kInt);
}

at::Tensor bytes_of(const Picture& picture) {
  return at::tensor(at::ArrayRef<uint8_t>(picture.bytes), at::kByte)
      .view({picture.height, picture.width, picture.bands})
      .permute({2, 0, 1})
      .to(at::kInt);
}

std::string sentence_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing is wrong";
}

struct Case {
  std::string file;
  SaveOptions save = {};
  int bands = 3;
};

const std::vector<Case> kLossless{
    {"a.png"},
    {"interlaced.png", {.save = "interlace"}},
    {"strips.tif", {.save = "compression=lzw"}},
    {"tiles.tif", {.save = "tile,tile-width=64,tile-height=32,compression=deflate"}},
    {"big [x].tiff", {}},
    {"bigtiff.tif", {.save = "tile,tile-width=48,tile-height=48,bigtiff"}},
    {"pages.tif", {.save = "tile,tile-width=32,tile-height=32,pyramid"}},
    {"subifd.tif", {.save = "tile,tile-width=32,tile-height=32,pyramid,subifd"}},
    {"lossless.webp", {.save = "lossless"}},
    {"a.ppm"},
    {"sixteen.png", {.sixteen_bits = true}},
    {"sixteen.tif", {.save = "tile,tile-width=32,tile-height=32", .sixteen_bits = true}}};

const std::vector<Case> kLossy{{"a.jpg", {.save = "Q=80"}},
                               {"progressive.jpg", {.save = "interlace"}},
                               {"a.webp", {}},
                               {"alpha.webp", {}, 4},
                               {"jpeg.tif", {.save = "tile,compression=jpeg,pyramid"}},
                               {"grey.png", {}, 1},
                               {"grey.jpg", {}, 1},
                               {"grey16.png", {.sixteen_bits = true}, 1},
                               {"grey_alpha.png", {}, 2},
                               {"alpha.png", {}, 4},
                               {"alpha16.png", {.sixteen_bits = true}, 4},
                               {"alpha.tif", {.save = "tile"}, 4},
                               {"cmyk.jpg", {.cmyk = true}, 4},
                               {"cmyk.tif", {.save = "tile", .cmyk = true}, 4},
                               {"turned.jpg", {.orientation = 6}},
                               {"turned.tif", {.save = "tile", .orientation = 7}}};

std::string save(const Case& c, const Picture& picture, const ScratchFolder& folder) {
  // libvips takes brackets in the names of files it writes for options.
  const std::string plain = folder / (c.file.find('[') == std::string::npos ? c.file : "b.tiff");
  save_picture(picture, plain, c.save);
  if (plain != folder / c.file) std::filesystem::rename(plain, folder / c.file);
  return folder / c.file;
}

void expect_parts_of_whole(const Dataset& data, testing::Dice& dice, const std::string& what) {
  const at::Tensor whole = read_whole(data);
  const Extents size = data.extent(0);
  ASSERT_EQ(whole.sizes(), (std::vector<int64_t>{3, size[0], size[1]})) << what;
  for (int i = 0; i < 4; ++i) {
    Interval rows, cols;
    for (auto [interval, length] : {std::pair{&rows, size[0]}, std::pair{&cols, size[1]}}) {
      interval->begin = dice.pick(0, length - 1);
      interval->end = dice.pick(interval->begin + 1, length);
    }
    const at::Tensor part = read_part(data, 0, rows, cols);
    EXPECT_TRUE(
        at::equal(part, whole.slice(1, rows.begin, rows.end).slice(2, cols.begin, cols.end)))
        << what << " " << rows.begin << ".." << rows.end << " x " << cols.begin << ".." << cols.end;
  }
}

TEST(ImageFiles, HandOverThePixelsThatWereSaved) {
  const ScratchFolder folder;
  const Picture picture = make_picture(150, 203);
  for (const Case& c : kLossless) {
    const ImageFiles data = files({save(c, picture, folder)});
    EXPECT_TRUE(at::equal(bytes_of(read_whole(data)), bytes_of(picture))) << c.file;
  }
}

TEST(ImageFiles, PartsAreThoseOfTheWhole) {
  const ScratchFolder folder;
  testing::Dice dice(5);
  std::vector<Case> all = kLossless;
  all.insert(all.end(), kLossy.begin(), kLossy.end());
  for (const Case& c : all) {
    const std::string path = save(c, make_picture(150, 203, c.bands), folder);
    expect_parts_of_whole(files({path}), dice, c.file);
    for (const auto& [canvas, fit] :
         {std::pair{Extents{99, 80}, Fit::crop}, std::pair{Extents{300, 301}, Fit::pad},
          std::pair{Extents{99, 290}, Fit::crop_pad}, std::pair{Extents{57, 310}, Fit::resize}})
      expect_parts_of_whole(files({path}, {.canvas = canvas, .fit = fit}), dice,
                            c.file + " fit " + std::to_string(static_cast<int>(fit)));
  }
}

TEST(ImageFiles, PartsOfLevelsAreThoseOfTheWhole) {
  const ScratchFolder folder;
  testing::Dice dice(6);
  for (const char* where : {"", ",subifd"}) {
    const std::string path = folder / "pyramid.tif";
    save_picture(make_picture(400, 300), path,
                 {.save = std::string("tile,tile-width=32,tile-height=32,pyramid") + where,
                  .micrometres = 0.5});
    EXPECT_EQ(read_header(path).levels,
              (std::vector<Extents>{{400, 300}, {200, 150}, {100, 75}, {50, 37}, {25, 18}}));
    for (int level = 0; level < 5; ++level)
      expect_parts_of_whole(files({path}, {.level = level}), dice, std::to_string(level));
    // As large as level 1, and between levels 1 and 2.
    const at::Tensor level1 = read_whole(files({path}, {.level = 1}));
    EXPECT_TRUE(at::equal(read_whole(files({path}, {.micrometres = 1})), level1));
    const ImageFiles between = files({path}, {.micrometres = 1.25});
    EXPECT_EQ(between.extent(0), (Extents{160, 120}));
    expect_parts_of_whole(between, dice, "1.25 um");
  }
}

TEST(ImageFiles, OrientationsAreThoseOfExif) {
  const ScratchFolder folder;
  const Picture picture = make_picture(20, 31);
  const at::Tensor stored = bytes_of(picture);
  const std::vector<at::Tensor> shown{stored,          // 1
                                      stored.flip(2),  // 2: mirrored
                                      stored.rot90(2, {1, 2}),
                                      stored.flip(1),
                                      stored.transpose(1, 2),
                                      stored.rot90(-1, {1, 2}),  // 6: a quarter turn clockwise
                                      stored.rot90(2, {1, 2}).transpose(1, 2),
                                      stored.rot90(1, {1, 2})};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::string path = folder / "turned.tif";
    save_picture(picture, path, {.orientation = orientation});
    const at::Tensor seen = bytes_of(read_whole(files({path})));
    EXPECT_TRUE(at::equal(seen, shown[orientation - 1])) << orientation;
  }
}

TEST(ImageFiles, ConvertToRgb) {
  const ScratchFolder folder;
  const auto seen = [&](const Picture& picture, const char* name, const SaveOptions& options = {}) {
    save_picture(picture, folder / name, options);
    const at::Tensor bytes = bytes_of(read_whole(files({folder / name})));
    return std::vector<int>{bytes[0][0][0].item<int>(), bytes[1][0][0].item<int>(),
                            bytes[2][0][0].item<int>()};
  };
  EXPECT_EQ(seen({1, 1, 1, {77}}, "grey.png"), (std::vector{77, 77, 77}));
  EXPECT_EQ(seen({1, 1, 1, {77}}, "grey16.png", {.sixteen_bits = true}), (std::vector{77, 77, 77}));
  EXPECT_EQ(seen({1, 1, 4, {10, 20, 30, 0}}, "clear.png"), (std::vector{255, 255, 255}));
  EXPECT_EQ(seen({1, 1, 4, {10, 20, 30, 255}}, "opaque.png"), (std::vector{10, 20, 30}));
  EXPECT_EQ(seen({1, 1, 2, {100, 51}}, "veil.png"), (std::vector{224, 224, 224}));
  EXPECT_EQ(seen({1, 1, 4, {0, 0, 0, 0}}, "clear16.png", {.sixteen_bits = true}),
            (std::vector{255, 255, 255}));
  EXPECT_EQ(seen({1, 1, 4, {0, 0, 0, 0}}, "white.tif", {.cmyk = true}),
            (std::vector{255, 255, 255}));
}

TEST(ImageFiles, FitsStandInTheCentre) {
  const ScratchFolder folder;
  const Picture picture = make_picture(30, 40);
  save_picture(picture, folder / "a.png");
  const at::Tensor bytes = bytes_of(picture);
  const auto seen = [&](Fit fit, const Extents& canvas) {
    return bytes_of(read_whole(files({folder / "a.png"}, {.canvas = canvas, .fit = fit})));
  };
  EXPECT_TRUE(at::equal(seen(Fit::crop, {11, 20}), bytes.slice(1, 9, 20).slice(2, 10, 30)));
  const at::Tensor padded = seen(Fit::pad, {33, 40});
  EXPECT_TRUE(at::equal(padded.slice(1, 1, 31), bytes));
  EXPECT_TRUE(padded.slice(1, 0, 1).eq(255).all().item<bool>());
  EXPECT_TRUE(padded.slice(1, 31).eq(255).all().item<bool>());
  EXPECT_TRUE(at::equal(seen(Fit::exact, {30, 40}), bytes));
  for (const auto& [canvas, to] : {std::pair{Extents{30, 40}, 0}, std::pair{Extents{13, 17}, 1},
                                   std::pair{Extents{45, 60}, 1}, std::pair{Extents{7, 90}, 1}}) {
    const at::Tensor expected = at::_upsample_bilinear2d_aa(bytes.to(at::kDouble).unsqueeze(0),
                                                            canvas, /*align_corners=*/false)[0];
    EXPECT_LE((seen(Fit::resize, canvas) - expected).abs().max().item<double>(), to);
  }
}

TEST(ImageFiles, SayWhatIsWrong) {
  const ScratchFolder folder;
  const Picture picture = make_picture(300, 300);
  const auto expect = [](const ImageFiles& data, const std::string& words) {
    const std::string sentence = sentence_of([&] { read_whole(data); });
    EXPECT_NE(sentence.find(words), std::string::npos) << data.name(0) << ": " << sentence;
    EXPECT_NE(sentence.find(data.name(0)), std::string::npos) << sentence;
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
  };
  ::testing::internal::CaptureStderr();
  expect(files({folder / "none.png"}), "there is no such file");
  expect(files({folder.path()}), "it is a folder");
  std::ofstream(folder / "empty.png").close();
  expect(files({folder / "empty.png"}), "cannot read");
  std::ofstream(folder / "text.png") << "these are not pixels";
  expect(files({folder / "text.png"}), "it is not an image that libvips knows");
  for (const char* name : {"cut.png", "cut.jpg", "cut.tif"}) {
    save_picture(picture, folder / name);
    testing::truncate_file(folder / name, 0.6);
    expect(files({folder / name}), "cannot read");
  }
  // What a format can notice: a checksum, codes that do not exist, a tile that does not begin.
  for (const auto& [name, from] : {std::pair{"damaged.png", 20000}, std::pair{"damaged.jpg", 5000},
                                   std::pair{"damaged.tif", 8}}) {
    save_picture(picture, folder / name,
                 {.save = name == std::string("damaged.tif") ? "tile,compression=deflate" : ""});
    testing::damage_file(folder / name, from);
    expect(files({folder / name}), "cannot read");
  }
  save_picture(picture, folder / "float.tif", {.floats = true});
  expect(files({folder / "float.tif"}), "its values are of type float");
  save_picture(make_picture(10, 10, 6), folder / "six.tif");
  expect(files({folder / "six.tif"}), "a pixel has 6 values");
  save_picture(picture, folder / "a.png");
  expect(files({folder / "a.png"}, {.level = 1}), "it has 1 level, from 0 to 0");
  expect(files({folder / "a.png"}, {.micrometres = 1}), "nothing in it says how large a pixel is");
  save_picture(picture, folder / "half.tif", {.micrometres = 0.5});
  expect(files({folder / "half.tif"}, {.micrometres = 0.25}), "its own have 0.5");
  expect(files({folder / "a.png"}, {.canvas = {400, 300}}),
         "has 300x300 pixels, not the image size of 400x300; use crop");
  expect(files({folder / "a.png"}, {.canvas = {400, 300}, .fit = Fit::crop}), "larger images");
  expect(files({folder / "a.png"}, {.canvas = {200, 300}, .fit = Fit::pad}), "smaller images");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

// Each thread hears of its own file, however many fail at the same time; none stays open.
TEST(ImageFiles, ThreadsDoNotDisturbEachOther) {
  const ScratchFolder folder;
  const Picture picture = make_picture(200, 200);
  std::vector<std::string> paths;
  for (int i = 0; i < 16; ++i) {
    paths.push_back(folder / (std::to_string(i) + (i % 2 == 0 ? ".jpg" : ".png")));
    save_picture(picture, paths.back());
    if (i % 4 >= 2) testing::truncate_file(paths.back(), 0.5);
  }
  const ImageFiles data = files(paths);
  std::vector<std::string> alone, together(paths.size());
  const auto attempt = [&](int64_t i) {
    return sentence_of([&] { read_part(data, i, {100, 200}, {0, 200}); });
  };
  for (size_t i = 0; i < paths.size(); ++i) alone.push_back(attempt(static_cast<int64_t>(i)));
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = open_files();
  {
    std::vector<std::jthread> threads;
    for (size_t first = 0; first < 4; ++first)
      threads.emplace_back([&, first] {
        for (size_t i = first; i < paths.size(); i += 4) together[i] = attempt(i);
      });
  }
  EXPECT_EQ(together, alone);
  EXPECT_EQ(open_files(), before);
  EXPECT_EQ(alone[0], "nothing is wrong");
  EXPECT_NE(alone[2], "nothing is wrong");
}

/// Writes a slide of three levels, each half as large, as Aperio's scanners write them: tiles of
/// JPEG, and a description that says who wrote it and how large a pixel is.
std::string save_slide(const ScratchFolder& folder, const char* name) {
  const std::string tiff = folder / "slide.tif";  // libvips knows no other ending
  save_picture(make_picture(152, 208), tiff,
               {.save = "tile,tile-width=64,tile-height=64,compression=jpeg,pyramid",
                .description = "Aperio Image Library v1\r\n208x152 (64x64) JPEG/RGB Q=75"
                               "|AppMag = 20|MPP = 0.4990"});
  std::filesystem::rename(tiff, folder / name);
  return folder / name;
}

/// Returns the bytes [3, rows, cols] of a level, as OpenSlide itself reads it.
at::Tensor read_with_openslide(const std::string& path, int level, const Extents& size) {
  at::Tensor argb = at::empty({size[0], size[1]}, at::kInt);
  openslide_t* slide = openslide_open(path.c_str());
  ensure(slide != nullptr, "OpenSlide does not know {}", path);
  openslide_read_region(slide, reinterpret_cast<uint32_t*>(argb.data_ptr<int>()), 0, 0, level,
                        size[1], size[0]);
  const bool failed = openslide_get_error(slide) != nullptr;
  openslide_close(slide);
  ensure(!failed, "OpenSlide cannot read {}", path);
  const auto channel = [&](int bits) { return argb.bitwise_right_shift(bits).bitwise_and(255); };
  EXPECT_TRUE(channel(24).eq(255).all().item<bool>()) << path << " is transparent somewhere";
  return at::stack({channel(16), channel(8), channel(0)});
}

TEST(Slides, AreReadAsOpenSlideReadsThem) {
  const ScratchFolder folder;
  const std::string path = save_slide(folder, "small.svs");
  const ImageHeader header = read_header(path);
  EXPECT_EQ(header.format, "aperio slide");
  EXPECT_EQ(header.levels, (std::vector<Extents>{{152, 208}, {76, 104}, {38, 52}}));
  EXPECT_DOUBLE_EQ(header.micrometres[0], 0.499);
  EXPECT_DOUBLE_EQ(header.micrometres[1], 0.499);
  testing::Dice dice(8);
  for (int level = 0; level < 3; ++level) {
    const ImageFiles data = files({path}, {.level = level});
    EXPECT_TRUE(at::equal(bytes_of(read_whole(data)),
                          read_with_openslide(path, level, header.levels[level])));
    expect_parts_of_whole(data, dice, "level " + std::to_string(level));
  }
}

TEST(Slides, BrokenOnesAreNamed) {
  using namespace std::string_view_literals;
  const ScratchFolder folder;
  // In place of the mark where a tile's pixels begin, one that promises a table.
  const std::string unreadable = save_slide(folder, "unreadable.svs");
  testing::replace_in_file(unreadable, "\xff\xda"sv, "\xff\xdb"sv);
  // The tag of compression: one short number, 1 for none; nobody has ever compressed by 52479.
  const std::string unopenable = folder / "unopenable.tiff";
  save_picture(make_picture(20, 20), unopenable, {.save = "tile,compression=none"});
  testing::replace_in_file(unopenable, "\x03\x01\x03\0\x01\0\0\0\x01\0"sv,
                           "\x03\x01\x03\0\x01\0\0\0\xff\xcc"sv);
  ::testing::internal::CaptureStderr();
  for (const std::string& path : {unreadable, unopenable}) {
    const ImageFiles data = files({path});
    const std::string sentence = sentence_of([&] { read_whole(data); });
    EXPECT_TRUE(sentence.starts_with("cannot read " + path + ": ")) << sentence;
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Slides, PyramidsHaveTheirLevels) {
  const ScratchFolder folder;
  const std::string path = folder / "pyramid.tiff";
  save_picture(make_picture(250, 300), path,
               {.save = "tile,tile-width=64,tile-height=64,pyramid,compression=deflate,"
                        "predictor=horizontal,profile=srgb"});
  EXPECT_EQ(read_header(path).levels,
            (std::vector<Extents>{{250, 300}, {125, 150}, {62, 75}, {31, 37}}));
  testing::Dice dice(9);
  for (int level = 0; level < 4; ++level)
    expect_parts_of_whole(files({path}, {.level = level}), dice, "level " + std::to_string(level));
}

}  // namespace
}  // namespace mpi4dl
