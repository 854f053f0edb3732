// Messages between dsat and a plugin's process: whole ones come out whatever pieces they come in, and wrong ones are
// refused.
#include "plugin/framing.h"

#include <gmock/gmock.h>

#include "support/error_of.h"

namespace dsat::host {
namespace {

using ::testing::HasSubstr;

TEST(Framing, MessagesComeOutWholeWhateverPiecesTheyComeIn) {
  const std::string stream =
      framed({{"call", "save"}}) + framed_bytes(std::string("\0\xff\n", 3)) + framed(Json::object());
  for (size_t piece = 1; piece <= stream.size(); ++piece) {
    FrameReader reader;
    std::vector<Message> messages;
    for (size_t at = 0; at < stream.size(); at += piece) {
      const std::string part = stream.substr(at, piece);
      reader.append(part.data(), part.size());
      while (auto message = reader.next()) messages.push_back(*message);
    }
    ASSERT_EQ(messages.size(), 3u) << piece;
    EXPECT_EQ(messages[0].json()["call"], "save");
    EXPECT_EQ(messages[1].body, std::string("\0\xff\n", 3));
  }
}

TEST(Framing, WhatIsNoMessageIsRefused) {
  const auto refusal = [](const std::string& bytes) {
    return error_of(
        [&] {
          FrameReader reader;
          reader.append(bytes.data(), bytes.size());
          if (auto message = reader.next()) message->json();
        },
        DSAT_DATA_LOSS);
  };
  EXPECT_THAT(refusal("printed by mistake"), HasSubstr("no message"));
  EXPECT_THAT(refusal(std::string("\xff\xff\xff\xffJ", 5)), HasSubstr("bytes, more than"));
  EXPECT_THAT(refusal(framed(Json("text"))), HasSubstr("no JSON object"));
  EXPECT_THAT(refusal(framed_bytes("{}")), HasSubstr("no JSON object"));
  std::string deep = "{\"a\":" + std::string(5000, '[') + std::string(5000, ']') + "}";
  std::string frame = framed_bytes(deep);
  frame[4] = 'J';
  EXPECT_THAT(refusal(frame), HasSubstr("too deep"));
}

}  // namespace
}  // namespace dsat::host
