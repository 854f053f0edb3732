// What DeepSpeed's own lines say of a script.
#include "outputs/script_signs.h"

#include <gtest/gtest.h>

namespace dsat::host {
namespace {

// What 0.14.5 prints for each file of a checkpoint.
std::string saving(const std::string& path) {
  return "[2026-11-23 18:48:13,058] [INFO] [torch_checkpoint_engine.py:21:save] [Torch] Saving " + path + "...";
}

TEST(ScriptSigns, ACheckpointBelowTheTrialsFolderIsItsOwn) {
  const auto outside = [](const std::string& path, const std::string& cwd) {
    return checkpoint_folder_outside({"step 1", saving(path)}, cwd, "/home/ann/study/trials/1");
  };
  EXPECT_EQ(outside("ck/global_step4/mp_rank_00_model_states.pt", "/home/ann"), "/home/ann/ck");
  EXPECT_EQ(outside("../ck/global_step4/mp_rank_00_model_states.pt", "/home/ann/run"), "/home/ann/ck");
  EXPECT_EQ(outside("/data/ck/global_step4/a.pt", "/home/ann/study/trials/1/cwd"), "/data/ck");
  EXPECT_EQ(outside("/home/ann/study/trials/11/ck/global_step4/a.pt", "/home/ann"), "/home/ann/study/trials/11/ck");
  EXPECT_EQ(outside("ck/global_step4/a.pt", "/home/ann/study/trials/1/cwd"), "");
  EXPECT_EQ(outside("/home/ann/study/trials/1/ck/global_step4/a.pt", "/home/ann"), "");
  EXPECT_EQ(checkpoint_folder_outside({"[Torch] Saving ...", "[Torch] Saving", "..."}, "/home/ann", "/w"), "");
}

TEST(ScriptSigns, EachEnginePrintsItsConfigurationOnce) {
  const std::string heading = "[2026-11-23 18:36:46,906] [INFO] [config.py:997:print] DeepSpeedEngine configuration:";
  EXPECT_EQ(count_engines({"step 1"}), 0);
  EXPECT_EQ(count_engines({heading, "  amp_enabled .................. False"}), 1);
  EXPECT_EQ(count_engines({heading, "step 1", heading}), 2);
}

}  // namespace
}  // namespace dsat::host
