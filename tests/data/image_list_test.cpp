#include "data/image_list.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/error.hpp"
#include "data/csv.hpp"
#include "support/test_images.hpp"

namespace mpi4dl {
namespace {

using testing::ScratchFolder;

// Files are listed by name alone, so empty ones do.
void touch(const std::string& path, const std::string& text = "") {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string sentence_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing is wrong";
}

void expect_refused(const std::string& path, const std::string& words) {
  const std::string sentence = sentence_of([&] { list_images(path); });
  EXPECT_NE(sentence.find(words), std::string::npos) << sentence;
}

std::vector<int64_t> labels_of(const ImageList& list) {
  std::vector<int64_t> labels;
  for (const ListedImage& image : list.images) labels.push_back(image.label);
  return labels;
}

TEST(ImageList, FoldersAreClassesInTheOrderOfTheirNames) {
  const ScratchFolder folder;
  for (const char* name : {"tumour/b.png", "tumour/a.JPG", "normal/x/y.svs", "normal/.hidden.png",
                           "normal/notes.txt", ".git/z.png", "loose.png"})
    touch(folder / name);
  const ImageList list = list_images(folder.path());
  EXPECT_EQ(list.classes, (std::vector<std::string>{"normal", "tumour"}));
  EXPECT_EQ(labels_of(list), (std::vector<int64_t>{0, 1, 1}));
  EXPECT_EQ(list.images[0].path, folder / "normal/x/y.svs");
  EXPECT_EQ(list.images[1].path, folder / "tumour/a.JPG");
  EXPECT_FALSE(list.has_split);
}

TEST(ImageList, TrainAndValAreParts) {
  const ScratchFolder folder;
  for (const char* name : {"train/a/1.png", "train/b/2.png", "train/b/3.png", "val/b/4.png"})
    touch(folder / name);
  const ImageList list = list_images(folder.path());
  EXPECT_TRUE(list.has_split);
  EXPECT_EQ(labels_of(list), (std::vector<int64_t>{0, 1, 1, 1}));
  EXPECT_TRUE(list.images[3].validation);
  EXPECT_FALSE(list.images[2].validation);
  touch(folder / "val/c/5.png");
  expect_refused(folder.path(), "has a class 'c' that");
}

TEST(ImageList, ImagesAloneHaveNoClass) {
  const ScratchFolder folder;
  touch(folder / "1.png");
  const ImageList list = list_images(folder.path());
  EXPECT_EQ(labels_of(list), (std::vector<int64_t>{ListedImage::kUnknown}));
  EXPECT_NE(sentence_of([&] { check_classes(list, 2, "it"); }).find("nothing says which class"),
            std::string::npos);
}

TEST(ImageList, KeysDoNotDependOnWhereTheFolderIs) {
  const ScratchFolder here, there;
  for (const ScratchFolder* folder : {&here, &there}) touch(*folder / "a/1.png");
  EXPECT_EQ(list_images(here.path()).images[0].key, list_images(there.path() + "/").images[0].key);
}

TEST(ImageList, ReadsCsvFiles) {
  const ScratchFolder folder;
  touch(folder / "list.csv",
        "\xef\xbb\xbflabel,path,split\r\n2,\"a, \"\"b\"\".png\",train\r\n\r\n0,/far/c.png,val\n");
  const ImageList list = list_images(folder / "list.csv");
  EXPECT_EQ(labels_of(list), (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(list.images[0].path, folder / "a, \"b\".png");
  EXPECT_EQ(list.images[1].path, "/far/c.png");
  EXPECT_TRUE(list.images[1].validation);
  EXPECT_TRUE(list.has_split);
}

TEST(ImageList, ChecksClasses) {
  const ImageList folders{{"a", "b"}, {{"a/1.png", 0}, {"b/1.png", 1}}, false};
  EXPECT_NO_THROW(check_classes(folders, 2, "it"));
  EXPECT_NE(sentence_of([&] { check_classes(folders, 10, "it"); }).find("use --num-classes 2"),
            std::string::npos);
  const ImageList csv{{}, {{"x.png", 7}}, false};
  EXPECT_NO_THROW(check_classes(csv, 8, "it"));
  EXPECT_NE(sentence_of([&] { check_classes(csv, 7, "it"); }).find("x.png has label 7"),
            std::string::npos);
}

TEST(ImageList, SaysWhatIsWrong) {
  const ScratchFolder folder;
  expect_refused(folder / "nothing", "there is no folder or CSV file");
  expect_refused(folder.path(), "neither a folder of images for each class nor images");
  const auto refused = [&](const std::string& text, const std::string& words) {
    touch(folder / "list.csv", text);
    expect_refused(folder / "list.csv", words);
  };
  refused("", "is empty");
  refused("file,class\na.png,1\n", "is 'file,class'; it must name the columns path,label");
  refused("label\n1\n", "is 'label'; it must name");
  refused("path,label\n", "names no images");
  refused("path,label\na.png,1\nb.png\n", "line 3: 1 fields instead of 2");
  refused("path,label\na.png,one\n", "line 2: the label 'one' is not a number of a class");
  refused("path,label\na.png,-1\n", "the label '-1' is not a number of a class");
  refused("path,label\na.png,1.5\n", "the label '1.5' is not a number of a class");
  refused("path,label\n,1\n", "line 2: the path is empty");
  refused("path,label,split\na.png,1,test\n", "split is 'test'; use train or val");
  refused("path,label\n\"a.png,1\n", "line 2: a quote is never closed");
}

TEST(Csv, CountsLinesThroughQuotes) {
  const ScratchFolder folder;
  touch(folder / "x.csv", "a,\"b\nc\"\n\nd,");
  const std::vector<CsvRow> rows = read_csv(folder / "x.csv");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].fields, (std::vector<std::string>{"a", "b\nc"}));
  EXPECT_EQ(rows[1].line, 4);
  EXPECT_EQ(rows[1].fields, (std::vector<std::string>{"d", ""}));
}

}  // namespace
}  // namespace mpi4dl
