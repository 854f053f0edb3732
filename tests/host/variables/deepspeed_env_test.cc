// The file by which the deepspeed launcher takes variables to other hosts.
#include "variables/deepspeed_env.h"

#include <gtest/gtest.h>

#include "support/temp_dir.h"

namespace dsat::host {
namespace {

class DeepSpeedEnv : public TempDirTest {
 protected:
  DeepSpeedEnv() {
    std::filesystem::create_directories(dir() / "home");
    std::filesystem::create_directories(dir() / "cwd");
  }
  std::string text(const Environment& variables, const std::string& own_file = "") const {
    Environment caller{"HOME=" + (dir() / "home").string()};
    if (!own_file.empty()) set_variable(caller, "DS_ENV_FILE", own_file);
    return deepspeed_env(variables, caller, dir() / "cwd");
  }
};

TEST_F(DeepSpeedEnv, HasTheVariablesALineEach) {
  EXPECT_EQ(text({"DSAT_TRIAL_ID=3", "CACHE=/scratch/x"}), "DSAT_TRIAL_ID=3\nCACHE=/scratch/x\n");
  EXPECT_EQ(text({}), "");
}

TEST_F(DeepSpeedEnv, TheUsersOwnLinesComeFirst) {
  write_text(dir() / "home/.deepspeed_env", "A=1");
  write_text(dir() / "cwd/.deepspeed_env", "B=2\n");
  EXPECT_EQ(text({"C=3"}), "A=1\nB=2\nC=3\n") << "the launcher would not read them beside this file";
  write_text(dir() / "own", "D=4\n");
  const std::string own = (dir() / "own").string();
  EXPECT_EQ(text({"C=3"}, own), "D=4\nC=3\n");
  EXPECT_EQ(text({"DS_ENV_FILE=" + own}), "D=4\nDS_ENV_FILE=" + own + "\n") << "a variable of the study names it";
}

// The launcher writes `export NAME=value; ` into a line for the other host's shell.
TEST_F(DeepSpeedEnv, AValueThatIsNoPlainWordIsLeftOut) {
  EXPECT_EQ(text({"A=x y", "B=$(reboot)", "C=a;b", "D=", "E=k=v,w:1", "F=%h"}), "D=\nE=k=v,w:1\n");
}

}  // namespace
}  // namespace dsat::host
