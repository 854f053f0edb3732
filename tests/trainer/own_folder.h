// A folder for what a test writes.
#ifndef DSAT_TESTS_TRAINER_OWN_FOLDER_H_
#define DSAT_TESTS_TRAINER_OWN_FOLDER_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace dsat::trainer {

// Of this test alone: tests run side by side. It need not exist.
inline std::filesystem::path own_folder() {
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  return std::filesystem::path(::testing::TempDir()) / (std::string(test->test_suite_name()) + "." + test->name());
}

}  // namespace dsat::trainer

#endif  // DSAT_TESTS_TRAINER_OWN_FOLDER_H_
