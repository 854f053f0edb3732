// Exceptions of other libraries, made by the libraries themselves.
// The text that a person reads is compared whole.
#include "base/error_text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "dsat/error.h"

namespace dsat::trainer {
namespace {

template <typename Call>
std::string text_of(Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error_text(error);
  }
  return "nothing was thrown";
}

TEST(ErrorTextTest, LeavesOutWhatOnlyTheLibraryUnderstands) {
  EXPECT_EQ(text_of([] { static_cast<void>(Json(1).get<std::string>()); }),
            "a JSON value is not as expected: type must be string, but is number");
  EXPECT_EQ(text_of([] { std::filesystem::directory_iterator("/no/such/folder"); }),
            "/no/such/folder: No such file or directory");
  EXPECT_EQ(text_of([] {
              std::ifstream in("/no/such/file");
              in.exceptions(std::ios::failbit);
            }),
            "a file cannot be read or written");
}

TEST(ErrorTextTest, KeepsWordsThatAreForPeople) {
  EXPECT_EQ(text_of([] { throw Error("--ranks 0: expected 1 or more"); }), "--ranks 0: expected 1 or more");
  EXPECT_EQ(text_of([] { throw std::runtime_error("my data is gone"); }), "my data is gone");
}

}  // namespace
}  // namespace dsat::trainer
