// What everybody may change is not run.
#include "base/world_writable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_dir.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Trusted : public TempDirTest {
 protected:
  Trusted() { write_text(file_, "code"); }
  void allow(const fs::path& path, fs::perms more) { fs::permissions(path, more, fs::perm_options::add); }
  const fs::path file_ = dir() / "libx.so";
};

TEST_F(Trusted, AFileOfOnesOwnIsTrusted) { EXPECT_EQ(why_world_writable(file_), ""); }

TEST_F(Trusted, WhatEverybodyMayWriteIsNot) {
  allow(file_, fs::perms::others_write);
  EXPECT_THAT(why_world_writable(file_), HasSubstr("(chmod o-w "));
}

TEST_F(Trusted, AFolderThatEverybodyMayWriteToIsNot) {
  allow(dir(), fs::perms::others_write);
  EXPECT_THAT(why_world_writable(file_), HasSubstr("its folder"));
  allow(dir(), fs::perms::sticky_bit);
  EXPECT_EQ(why_world_writable(file_), "");
}

TEST_F(Trusted, ALinkIsAsGoodAsItsTarget) {
  allow(file_, fs::perms::others_write);
  fs::create_directory(dir() / "links");
  fs::create_symlink(file_, dir() / "links" / "liby.so");
  EXPECT_NE(why_world_writable(dir() / "links" / "liby.so"), "");
}

TEST_F(Trusted, AMissingFileIsAnotherMatter) { EXPECT_EQ(why_world_writable(dir() / "none"), ""); }

}  // namespace
}  // namespace dsat::host
