// Another user of the machine, as root can play one.
#ifndef DSAT_TESTS_SUPPORT_OTHER_USER_H_
#define DSAT_TESTS_SUPPORT_OTHER_USER_H_

#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <filesystem>

namespace dsat {

inline constexpr uid_t kOtherUser = 54321;

inline void give_to_other_user(const std::filesystem::path& path) {
  ASSERT_EQ(lchown(path.c_str(), kOtherUser, kOtherUser), 0);
}

}  // namespace dsat

#define DSAT_NEEDS_OTHER_USER() \
  if (geteuid() != 0) GTEST_SKIP() << "only root can play another user"

#endif  // DSAT_TESTS_SUPPORT_OTHER_USER_H_
