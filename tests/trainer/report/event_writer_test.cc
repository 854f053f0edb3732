// Event files, read back record by record.
// Images are unpacked to the pixels that were given.
#include "dsat/trainer/event_writer.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "dsat/error.h"
#include "support/error_of.h"
#include "support/temp_dir.h"

namespace dsat::trainer {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Checksum by definition, bit by bit: a reader of its own, not the writer's table.
uint32_t checksum(const std::string& bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int i = 0; i < 8; ++i) crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82F63B78 : crc >> 1;
  }
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xA282EAD8;
}

template <typename T>
T read(const std::string& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> records;
  for (size_t at = 0; at < file.size();) {
    const auto size = read<uint64_t>(file, at);
    EXPECT_EQ(read<uint32_t>(file, at + 8), checksum(file.substr(at, 8)));
    records.push_back(file.substr(at + 12, size));
    EXPECT_EQ(read<uint32_t>(file, at + 12 + size), checksum(records.back()));
    at += 16 + size;
  }
  return records;
}

// The last value of each field; numbers as their bytes, varints as eight.
std::map<int, std::string> fields_of(const std::string& message) {
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(message.at(at++));
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  };
  std::map<int, std::string> fields;
  while (at < message.size()) {
    const uint64_t key = varint();
    std::string value(8, '\0');
    if (key % 8 == 0) {
      const uint64_t number = varint();
      std::memcpy(value.data(), &number, 8);
    } else {
      const size_t size = key % 8 == 1 ? 8 : key % 8 == 5 ? 4 : varint();
      value = message.substr(at, size);
      at += size;
    }
    fields[static_cast<int>(key / 8)] = value;
  }
  return fields;
}

class EventWriterTest : public TempDirTest {
 protected:
  std::vector<std::string> records() const {
    const auto file = fs::directory_iterator(folder_)->path();
    EXPECT_THAT(file.filename(), HasSubstr("events.out.tfevents."));
    std::ifstream in(file, std::ios::binary);
    return records_of({std::istreambuf_iterator<char>(in), {}});
  }
  fs::path folder_ = dir() / "events";  // the writer makes it
};

TEST_F(EventWriterTest, MakesNoFileBeforeItsFirstValue) {
  const EventWriter writer(folder_);
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(EventWriterTest, WritesScalars) {
  EventWriter writer(folder_);
  writer.add_scalar("loss", 0.25, 300);
  writer.add_scalar("accuracy", 1, 301);
  const auto events = records();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(fields_of(events[0])[3], "brain.Event:2");
  auto event = fields_of(events[1]);
  EXPECT_EQ(read<uint64_t>(event[2], 0), 300u);
  EXPECT_GT(read<double>(event[1], 0), 1e9);
  auto value = fields_of(fields_of(event[5])[1]);
  EXPECT_EQ(value[1], "loss");
  EXPECT_EQ(read<float>(value[2], 0), 0.25f);
}

TEST_F(EventWriterTest, WritesImagesAsPng) {
  EventWriter writer(folder_);
  at::Tensor image = at::zeros({3, 2, 2});
  image[0].fill_(1.0);
  image[1].fill_(0.5);
  writer.add_image("picture", image, 1);
  auto encoded = fields_of(fields_of(fields_of(fields_of(records().at(1))[5])[1])[4]);
  EXPECT_EQ(read<uint64_t>(encoded[1], 0), 2u);
  EXPECT_EQ(read<uint64_t>(encoded[2], 0), 2u);
  EXPECT_EQ(read<uint64_t>(encoded[3], 0), 3u);
  const std::string png = encoded[4];
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1A\n");
  const size_t data = png.find("IDAT") + 4;
  uLongf size = 64;
  std::string pixels(size, '\0');
  ASSERT_EQ(::uncompress(reinterpret_cast<Bytef*>(pixels.data()), &size, reinterpret_cast<const Bytef*>(&png[data]),
                         png.size() - data),
            Z_OK);
  pixels.resize(size);
  const std::string row("\0\xFF\x80\0\xFF\x80\0", 7);
  EXPECT_EQ(pixels, row + row);
}

std::vector<double> doubles_of(const std::string& packed) {
  std::vector<double> values(packed.size() / sizeof(double));
  std::memcpy(values.data(), packed.data(), packed.size());
  return values;
}

TEST_F(EventWriterTest, WritesHistograms) {
  EventWriter writer(folder_);
  at::Tensor values = at::zeros({2, 4});
  values[0][0] = -1;
  values[1] = 3;
  writer.add_histogram("weights", values, 5, /*bins=*/4);
  auto value = fields_of(fields_of(fields_of(records().at(1))[5])[1]);
  EXPECT_EQ(value[1], "weights");
  auto histogram = fields_of(value[5]);
  EXPECT_EQ(read<double>(histogram[1], 0), -1);  // min, max, num, sum, sum of squares
  EXPECT_EQ(read<double>(histogram[2], 0), 3);
  EXPECT_EQ(read<double>(histogram[3], 0), 8);
  EXPECT_EQ(read<double>(histogram[4], 0), 11);
  EXPECT_EQ(read<double>(histogram[5], 0), 37);
  EXPECT_THAT(doubles_of(histogram[6]), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(doubles_of(histogram[7]), ElementsAre(1, 3, 0, 4));
}

TEST_F(EventWriterTest, WritesAHistogramOfOneValue) {
  EventWriter writer(folder_);
  writer.add_histogram("bias", at::full({3}, 2.0), 1, /*bins=*/2);
  auto histogram = fields_of(fields_of(fields_of(fields_of(records().at(1))[5])[1])[5]);
  EXPECT_THAT(doubles_of(histogram[7]), ElementsAre(0, 3));
}

TEST_F(EventWriterTest, RefusesHistogramsOfNothing) {
  EventWriter writer(folder_);
  const auto complaint = [&](const at::Tensor& values) {
    return error_of([&] { writer.add_histogram("w", values, 0); });
  };
  EXPECT_THAT(complaint(at::zeros({0})), AllOf(HasSubstr("add_histogram 'w'"), HasSubstr("no real numbers")));
  EXPECT_THAT(complaint(at::Tensor()), HasSubstr("no real numbers"));
  EXPECT_THAT(complaint(at::full({2}, std::nan(""))), HasSubstr("NaN or infinity"));
  EXPECT_THAT(error_of([&] { writer.add_histogram("w", at::zeros({1}), 0, 0); }), HasSubstr("0 bins"));
}

TEST_F(EventWriterTest, WritesTexts) {
  EventWriter writer(folder_);
  writer.add_text("note", "a *word*", 2);
  auto value = fields_of(fields_of(fields_of(records().at(1))[5])[1]);
  EXPECT_EQ(fields_of(fields_of(value[9])[1])[1], "text");  // the plugin that shows it
  auto tensor = fields_of(value[8]);
  EXPECT_EQ(read<uint64_t>(tensor[1], 0), 7u);  // DT_STRING
  EXPECT_EQ(read<uint64_t>(fields_of(fields_of(tensor[2])[2])[1], 0), 1u);
  EXPECT_EQ(tensor[8], "a *word*");
  EXPECT_THAT(error_of([&] { writer.add_text("note", "\xFF", 2); }), HasSubstr("not UTF-8"));
}

TEST_F(EventWriterTest, RefusesWhatIsNoImage) {
  EventWriter writer(folder_);
  EXPECT_THAT(
      [&] {
        writer.add_image("x", at::zeros({2, 4, 4}), 0);
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("[2, 4, 4]"), HasSubstr("expected"))));
  EXPECT_THROW(writer.add_image("x", at::full({4, 4}, 1, at::kLong), 0), Error);
}

TEST_F(EventWriterTest, NamesAFolderThatCannotBeWritten) {
  std::ofstream(folder_.string()) << "a file";
  EventWriter writer(folder_);
  EXPECT_THAT([&] { writer.add_scalar("x", 1, 0); }, ThrowsMessage<Error>(HasSubstr("cannot be written")));
}

}  // namespace
}  // namespace dsat::trainer
