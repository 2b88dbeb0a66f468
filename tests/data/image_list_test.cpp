#include "data/image_list.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/error.hpp"
#include "base/utf8.hpp"
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
  EXPECT_EQ(list.loose, "loose.png");
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
  EXPECT_EQ(list.classes, std::vector<std::string>{});
  EXPECT_NO_THROW(check_classes(list, 2, "it"));
  EXPECT_NE(sentence_of([&] { check_labels(list); }).find("nothing says which class"),
            std::string::npos);
}

TEST(ImageList, AnImageHasOneClass) {
  ImageList list{.classes = {"cat", "dog"},
                 .images = {{.path = "1.png", .label = 0}, {.path = "1.png", .label = 0}}};
  EXPECT_NO_THROW(check_labels(list));
  list.images[1].label = 1;
  EXPECT_EQ(sentence_of([&] { check_labels(list); }),
            "1.png is said to be cat and dog; an image has one class");
  list.classes.clear();
  EXPECT_EQ(sentence_of([&] { check_labels(list); }),
            "1.png is said to be 0 and 1; an image has one class");
}

// The folder beside a MIRAX slide holds its pixels; it is not a class.
TEST(ImageList, AFolderMayBePartOfASlide) {
  const ScratchFolder folder;
  for (const char* name : {"a.mrxs", "a/Slidedat.ini", "b.png"}) touch(folder / name);
  const ImageList list = list_images(folder.path());
  ASSERT_EQ(list.images.size(), 2U);
  EXPECT_EQ(list.images[0].path, folder / "a.mrxs");
  EXPECT_EQ(labels_of(list), (std::vector<int64_t>{ListedImage::kUnknown, ListedImage::kUnknown}));
}

// By its ending, or by what it begins with.
TEST(ImageList, OneFileIsAnImage) {
  const ScratchFolder folder;
  touch(folder / "far.svs");
  save_picture(testing::make_picture(4, 5), folder / "a.png");
  std::filesystem::rename(folder / "a.png", folder / "scan.0017");
  for (const char* name : {"far.svs", "scan.0017"}) {
    const ImageList list = list_images(folder / name);
    ASSERT_EQ(list.images.size(), 1U);
    EXPECT_EQ(list.images[0].path, folder / name);
    EXPECT_EQ(list.images[0].label, ListedImage::kUnknown);
  }
  touch(folder / "model.pt", std::string("PK\3\4\0\0,\0", 8));
  expect_refused(folder / "model.pt", "is neither an image that libvips knows nor a CSV file");
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

TEST(ImageList, LabelsOfCsvFilesMayBeNames) {
  const ScratchFolder folder;
  touch(folder / "list.csv", "path,label\n1.png,tumour\n2.png,normal\n3.png,\n4.png,tumour\n");
  const ImageList list = list_images(folder / "list.csv");
  EXPECT_EQ(list.classes, (std::vector<std::string>{"normal", "tumour"}));
  EXPECT_EQ(labels_of(list), (std::vector<int64_t>{1, 0, ListedImage::kUnknown, 1}));
  touch(folder / "nan.csv", "path,label\n1.png,nan\n2.png,10th\n3.png,infinite\n");
  EXPECT_EQ(list_images(folder / "nan.csv").classes,
            (std::vector<std::string>{"10th", "infinite", "nan"}));
  touch(folder / "numbers.csv", "path,label\n1.png,10\n2.png,2\n3.png,\n");
  EXPECT_EQ(list_images(folder / "numbers.csv").classes, std::vector<std::string>{});
  EXPECT_EQ(labels_of(list_images(folder / "numbers.csv")),
            (std::vector<int64_t>{10, 2, ListedImage::kUnknown}));
  touch(folder / "paths.csv", "path\n1.png\n2.png\n");
  EXPECT_EQ(labels_of(list_images(folder / "paths.csv")),
            std::vector<int64_t>(2, ListedImage::kUnknown));
}

TEST(ImageList, CsvFilesMayHaveFurtherColumns) {
  const ScratchFolder folder;
  touch(folder / "list.csv",
        "scanner,Path, label ,stain,PATIENT\nA,1.png,0,HE,p1\nB,2.png,1,HE,p2\nB,3.png,1,HE,\n");
  const ImageList list = list_images(folder / "list.csv");
  EXPECT_EQ(labels_of(list), (std::vector<int64_t>{0, 1, 1}));
  EXPECT_EQ(list.images[1].path, folder / "2.png");
  EXPECT_EQ(list.images[1].patient, "p2");
  EXPECT_EQ(list.unused_columns, (std::vector<std::string>{"scanner", "stain"}));
  EXPECT_NE(list.images[0].group(), list.images[1].group());
  EXPECT_EQ(list.images[2].group(), list.images[2].key);  // whose it is, nobody says
}

TEST(ImageList, ChecksClasses) {
  const ImageList folders{{"a", "b"}, {{"a/1.png", 0}, {"b/1.png", 1}}, false};
  EXPECT_NO_THROW(check_classes(folders, 2, "it"));
  EXPECT_NE(sentence_of([&] {
              check_classes(folders, 10, "it");
            }).find("the number of classes is 10; use 2"),
            std::string::npos);
  const ImageList csv{{}, {{"x.png", 7}}, false};
  EXPECT_NO_THROW(check_classes(csv, 8, "it"));
  EXPECT_NE(sentence_of([&] { check_classes(csv, 7, "it"); }).find("x.png has label 7"),
            std::string::npos);
}

TEST(ImageList, ClassesOfAModelAreMatchedByName) {
  const std::vector<std::string> known{"benign", "normal", "tumour"};
  ImageList some{{"benign", "tumour"}, {{"1", 1}, {"2", 0}, {"3", ListedImage::kUnknown}}, false};
  match_classes(some, known, "it");
  EXPECT_EQ(labels_of(some), (std::vector<int64_t>{2, 0, ListedImage::kUnknown}));
  EXPECT_EQ(some.classes, known);
  ImageList others{{"cat", "dog"}, {{"1", 0}}, false};
  EXPECT_NE(sentence_of([&] { match_classes(others, known, "it"); })
                .find("it has a class 'cat' that the model does not know: its classes are benign, "
                      "normal, tumour"),
            std::string::npos);
  ImageList numbers{{}, {{"1", 2}}, false};
  match_classes(numbers, known, "it");
  EXPECT_EQ(numbers.images[0].label, 2);
  match_classes(others, {}, "it");  // a model that knows no names
  EXPECT_EQ(others.classes, (std::vector<std::string>{"cat", "dog"}));
}

TEST(ImageList, FilesAndPatientsAreInOnePart) {
  const auto sentence = [](const std::vector<ListedImage>& images) {
    std::vector<bool> validation;
    for (const ListedImage& image : images) validation.push_back(image.validation);
    return sentence_of([&] { check_apart({{}, images, true}, validation, "it"); });
  };
  const auto image = [](const char* path, bool validation, const char* patient = "") {
    return ListedImage{.path = path, .validation = validation, .patient = patient};
  };
  EXPECT_EQ(sentence({image("a", false), image("b", true), image("a", false)}), "nothing is wrong");
  EXPECT_EQ(sentence({image("a", false), image("x/../a", true)}),
            "it: x/../a is in the training part and in the validation part (a and x/../a); it "
            "belongs into one of them");
  EXPECT_EQ(sentence({image("a", false, "p1"), image("b", true, "p2"), image("c", true, "p1")}),
            "it: patient p1 is in the training part and in the validation part (a and c); it "
            "belongs into one of them");
}

TEST(ImageList, SeesThroughLinks) {
  const ScratchFolder folder;
  touch(folder / "pool/1.png");
  for (const char* part : {"train/a", "val/a"}) {
    std::filesystem::create_directories(folder / part);
    std::filesystem::create_symlink(folder / "pool/1.png", (folder / part) + "/1.png");
  }
  const ImageList list = list_images(folder.path());
  EXPECT_NE(sentence_of([&] {
              check_apart(list, {false, true}, "it");
            }).find("is in the training part and"),
            std::string::npos);
  EXPECT_NO_THROW(check_apart(list, {false, false}, "it"));
}

TEST(Utf8, IsWellFormed) {
  for (const char* good : {"", "tumour", "tum\xc3\xb6r", "\xe7\x99\x8c", "\xf0\x9f\x94\xac"})
    EXPECT_TRUE(is_utf8(good)) << good;
  for (const char* bad : {"tum\xf6r", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\x80", "\xe7\x99"})
    EXPECT_FALSE(is_utf8(bad)) << bad;
}

TEST(ImageList, SaysWhatIsWrong) {
  const ScratchFolder folder;
  expect_refused(folder / "nothing", "there is no folder, CSV file or image");
  expect_refused(folder.path(), "neither a folder of images for each class nor images");
  const auto refused = [&](const std::string& text, const std::string& words) {
    touch(folder / "list.csv", text);
    expect_refused(folder / "list.csv", words);
  };
  refused("", "is empty");
  refused("file,class\na.png,1\n", "is 'file,class'; it must name the columns: path and");
  refused("path,label,Path\na.png,1,b.png\n", "names the column path twice");
  refused("label\n1\n", "is 'label'; it must name");
  refused("path,lable\na.png,1\n", "has a column lable (did you mean label?); rename it");
  refused("path,label\n", "names no images");
  refused("path,label\na.png,1\nb.png\n", "line 3: 1 fields instead of 2");
  refused("path,label\na.png,one\nb.png,\nc.png,7\n",
          "line 4 has the number of a class for a label and line 2 the name of one");
  refused("path,label\na.png,tum\xf6r\n", "line 2: the label 'tum\xf6r' is not UTF-8");
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
