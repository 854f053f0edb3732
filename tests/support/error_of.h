// What a call says when it refuses.
#ifndef DSAT_TESTS_SUPPORT_ERROR_OF_H_
#define DSAT_TESTS_SUPPORT_ERROR_OF_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "dsat/error.h"

namespace dsat {

// The message of the dsat::Error that `call` throws, which has to be one line and to have this code; "no error" if it
// throws none.
template <class Call>
std::string error_of(Call call, dsat_status code = DSAT_INVALID_ARGUMENT) {
  try {
    call();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << "a message is one line: " << message;
    EXPECT_EQ(error.code(), code) << message;
    return message;
  }
  return "no error";
}

}  // namespace dsat

#endif  // DSAT_TESTS_SUPPORT_ERROR_OF_H_
