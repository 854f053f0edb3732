// What another user of the machine puts in one's way. Only root can play another user: without it these are skipped.
#include "dsat/base/owner.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dsat/base/files.h"
#include "support/other_user.h"
#include "support/temp_dir.h"

namespace dsat {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Owner : public TempDirTest {
 protected:
  // Opens for writing and closes again; the problem, if any.
  std::string opening(const char* name, int flags = O_RDWR | O_CREAT) const {
    const OpenedFile opened = open_own_file(dir() / name, flags);
    if (opened.fd >= 0) close(opened.fd);
    EXPECT_EQ(opened.fd < 0, !opened.problem.empty());
    return opened.problem;
  }
};

TEST_F(Owner, ANewFileIsForItsOwnerAlone) {
  EXPECT_THAT(opening("new"), IsEmpty());
  struct stat info {};
  ASSERT_EQ(stat((dir() / "new").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_THAT(opening("new"), IsEmpty());
}

TEST_F(Owner, LinksPipesAndFoldersAreNotOpened) {
  write_text(dir() / "bashrc", "mine");
  fs::create_symlink("bashrc", dir() / "link");
  fs::create_symlink("nowhere", dir() / "broken");
  fs::create_hard_link(dir() / "bashrc", dir() / "hard");
  ASSERT_EQ(mkfifo((dir() / "pipe").c_str(), 0600), 0);
  fs::create_directory(dir() / "folder");
  EXPECT_THAT(opening("link"), HasSubstr("a link"));
  EXPECT_THAT(opening("broken"), HasSubstr("a link"));
  EXPECT_THAT(opening("hard"), HasSubstr("another name"));
  EXPECT_THAT(opening("pipe"), HasSubstr("no regular file"));
  EXPECT_THAT(opening("pipe", O_RDONLY), HasSubstr("no regular file"));
  EXPECT_THAT(opening("pipe", O_WRONLY), HasSubstr("no regular file"));
  EXPECT_THAT(opening("folder"), HasSubstr("a folder"));
  EXPECT_THAT(opening("none", O_RDONLY), HasSubstr("No such file"));
  EXPECT_FALSE(fs::exists(dir() / "nowhere"));
  EXPECT_EQ(read_text(dir() / "bashrc"), "mine");
}

TEST_F(Owner, AFileWrittenWholeReplacesALinkAndNotItsTarget) {
  write_text(dir() / "bashrc", "mine");
  fs::create_symlink("bashrc", dir() / "report.html");
  fs::create_symlink("bashrc", dir() / "dsat.db.new");
  write_file_atomically(dir() / "report.html", "page");
  NewFile(dir() / "dsat.db.new").write("journal", 7);
  EXPECT_EQ(read_text(dir() / "report.html"), "page");
  EXPECT_EQ(read_text(dir() / "dsat.db.new"), "journal");
  EXPECT_EQ(read_text(dir() / "bashrc"), "mine");
}

TEST_F(Owner, EverybodysFolderIsNotOnesOwn) {
  EXPECT_THAT(why_others_control(dir()), IsEmpty());
  EXPECT_THAT(why_others_control(dir() / "none"), IsEmpty());
  fs::create_symlink(dir(), dir() / "again");
  EXPECT_THAT(why_others_control(dir() / "again"), IsEmpty()) << "a link of one's own";
  fs::permissions(dir(), fs::perms::all);
  EXPECT_THAT(why_others_control(dir()), HasSubstr("everybody"));
}

TEST_F(Owner, FilesFoldersAndLinksOfAnotherUserAreRefused) {
  DSAT_NEEDS_OTHER_USER();
  write_text(dir() / "theirs", "");
  fs::create_directory(dir() / "folder");
  write_text(dir() / "folder/file", "");
  fs::create_symlink("/tmp", dir() / "link");
  fs::create_symlink("link/../link", dir() / "mine");
  for (const char* name : {"theirs", "folder", "folder/file", "link"}) give_to_other_user(dir() / name);
  EXPECT_THAT(opening("theirs"), HasSubstr("another user"));
  EXPECT_THAT(opening("folder/file"), IsEmpty()) << "it belongs to the folder's owner, and the folder is chosen";
  EXPECT_THAT(why_others_control(dir() / "folder"), HasSubstr("another user"));
  EXPECT_EQ(link_of_others(dir() / "link/x"), dir() / "link");
  EXPECT_EQ(link_of_others(dir() / "mine"), dir() / "link") << "through a link of one's own";
  EXPECT_EQ(link_of_others(dir() / "folder/none/x"), std::nullopt);
}

TEST_F(Owner, LinksInACircleEnd) {
  fs::create_symlink("b", dir() / "a");
  fs::create_symlink("a", dir() / "b");
  EXPECT_EQ(link_of_others(dir() / "a"), std::nullopt);
}

}  // namespace
}  // namespace dsat
