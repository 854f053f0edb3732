// Checksums, records and messages against known bytes.
// The expected bytes are those of the formats' own definitions.
#include "dsat/event_file/event_file.h"

#include <gtest/gtest.h>

namespace dsat {
namespace {

// The check value of CRC-32C's definition, and RFC 3720, B.4.
TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
}

TEST(TfRecord, FramesItsBytesWithMaskedChecksums) {
  const std::string record = tfrecord("abc");
  ASSERT_EQ(record.size(), 8 + 4 + 3 + 4u);
  EXPECT_EQ(record.substr(0, 8), std::string("\3\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, 3), "abc");
  const auto number = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<uint8_t>(record[at + i]);
    return value;
  };
  const auto unmask = [](uint32_t masked) {
    const uint32_t rotated = masked - 0xA282EAD8u;
    return rotated >> 17 | rotated << 15;
  };
  EXPECT_EQ(unmask(number(8)), crc32c(std::string("\3\0\0\0\0\0\0\0", 8)));
  EXPECT_EQ(unmask(number(15)), crc32c("abc"));
}

// The examples of the protocol-buffer encoding guide: 150 as a varint is 96 01, "testing" is length-delimited.
TEST(ProtoMessage, FollowsTheEncodingGuide) {
  EXPECT_EQ(ProtoMessage().add_varint(1, 150).bytes(), "\x08\x96\x01");
  EXPECT_EQ(ProtoMessage().add_bytes(2, "testing").bytes(), "\x12\x07testing");
  EXPECT_EQ(ProtoMessage().add_float(2, 1.0f).bytes(), std::string("\x15\0\0\x80\x3F", 5));
  EXPECT_EQ(ProtoMessage().add_double(1, 1.0).bytes(), std::string("\x09\0\0\0\0\0\0\xF0\x3F", 9));
  EXPECT_EQ(ProtoMessage().add_bytes(1, std::string(300, 'x')).bytes().substr(0, 3), "\x0A\xAC\x02");
}

}  // namespace
}  // namespace dsat
