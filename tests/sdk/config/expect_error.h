// The message of the dsat::Error that `action` throws, for matchers.
#ifndef DSAT_TESTS_SDK_CONFIG_EXPECT_ERROR_H_
#define DSAT_TESTS_SDK_CONFIG_EXPECT_ERROR_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "dsat/error.h"

namespace dsat::config {

template <typename Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.code(), DSAT_INVALID_ARGUMENT);
    EXPECT_EQ(message.find('\n'), std::string::npos) << "a message is one line: " << message;
    return message;
  }
  return "no error";
}

}  // namespace dsat::config

#endif  // DSAT_TESTS_SDK_CONFIG_EXPECT_ERROR_H_
