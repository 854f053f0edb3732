// Where dsat's Python packages are found, and where in PYTHONPATH their folder stands.
#include "variables/python_package.h"

#include <gmock/gmock.h>

#include "support/temp_dir.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PythonPackageTest : public TempDirTest {
 protected:
  void put_package(const fs::path& folder) const {
    for (const char* name : {"determined", "dsat"}) {
      fs::create_directories(folder / name);
      write_text(folder / name / "__init__.py", "# a package\n");
    }
  }
  fs::path find(bool on_other_hosts = false) {
    return find_python_package(dir() / "libexec/dsat/dsat-launch", dir() / "run", on_other_hosts, notices_);
  }
  std::vector<std::string> notices_;
};

TEST_F(PythonPackageTest, IsFoundBesideTheLauncher) {
  put_package(dir() / "libexec/dsat/python");
  EXPECT_EQ(find(), dir() / "libexec/dsat/python");
  EXPECT_THAT(notices_, IsEmpty());
}

TEST_F(PythonPackageTest, OtherHostsHaveACopyInTheRunDirectory) {
  put_package(dir() / "libexec/dsat/python");
  EXPECT_EQ(find(true), dir() / "run/python");
  EXPECT_EQ(read_text(dir() / "run/python/determined/__init__.py"), "# a package\n");
  EXPECT_EQ(read_text(dir() / "run/python/dsat/__init__.py"), "# a package\n");
}

TEST_F(PythonPackageTest, WithoutItTrialsRunAllTheSameAndTheReasonIsReported) {
  EXPECT_EQ(find(), fs::path());
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("determined/__init__.py")));
}

TEST_F(PythonPackageTest, TheUsersOwnModulesGoFirst) {
  Environment variables;
  add_python_package("/ours", {"PYTHONPATH=/users"}, variables);
  EXPECT_EQ(get_variable(variables, "PYTHONPATH"), "/users:/ours");
  add_python_package("/more", {"PYTHONPATH=/users"}, variables);
  EXPECT_EQ(get_variable(variables, "PYTHONPATH"), "/users:/ours:/more") << "what the trial already has counts";
  Environment none;
  add_python_package("/ours", {}, none);
  EXPECT_EQ(get_variable(none, "PYTHONPATH"), "/ours");
}

}  // namespace
}  // namespace dsat::host
