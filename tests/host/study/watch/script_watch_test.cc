// What is reported of a script, and how often.
#include "study/watch/script_watch.h"

#include <gmock/gmock.h>

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ScriptWatchTest, ACheckpointOutsideTheTrialsFolderIsReportedOnce) {
  ScriptWatch watch;
  TrialEnd end;
  EXPECT_THAT(watch.add(end), IsEmpty());
  end.id = 3;
  end.checkpoint_outside = "/work/ck";
  EXPECT_THAT(watch.add(end), ElementsAre(AllOf(HasSubstr("trial 3 "), HasSubstr("checkpoint"), HasSubstr("/work/ck:"),
                                                HasSubstr("--trial-cwd copy; "), HasSubstr("{trial_dir}"))));
  EXPECT_THAT(watch.add(end), IsEmpty());
}

TEST(ScriptWatchTest, SeveralEnginesOfATrialThatCompletedAreReportedOnce) {
  ScriptWatch watch;
  TrialEnd end;
  end.engines = 2;
  end.outcome = Outcome::failed;
  EXPECT_THAT(watch.add(end), IsEmpty()) << "its launcher may have started it again";
  end.outcome = Outcome::completed;
  end.engines = 1;
  EXPECT_THAT(watch.add(end), IsEmpty());
  end.engines = 2;
  EXPECT_THAT(watch.add(end), ElementsAre(AllOf(HasSubstr("trial 0 "), HasSubstr("2 DeepSpeed engines"))));
  EXPECT_THAT(watch.add(end), IsEmpty());
}

}  // namespace
}  // namespace dsat::host
