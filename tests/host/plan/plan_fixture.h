// A plan made of changed options or of another configuration, or the line that refuses it.
#ifndef DSAT_TESTS_HOST_STUDY_PLAN_FIXTURE_H_
#define DSAT_TESTS_HOST_STUDY_PLAN_FIXTURE_H_

#include <algorithm>
#include <functional>
#include <string>

#include "host/study/study_fixture.h"
#include "plan/plan.h"
#include "support/error_of.h"

namespace dsat::host {

class PlanTest : public StudyTest {
 protected:
  using Change = std::function<void(StudyOptions&)>;

  std::string why_not(const Change& change) {
    StudyOptions given = options();
    change(given);
    return error_of([&] { make_plan(given); });
  }
  Plan plan_with(
      const std::string& config, const Change& change = [](StudyOptions&) {}) {
    write_text(dir() / "ds_config.json", config);
    if (!std::filesystem::exists(dir() / "train.py")) write_text(dir() / "train.py", "");
    StudyOptions given = options();
    change(given);
    return plan_of(given);
  }
  static bool noticed(const Plan& plan, const std::string& part) {
    return std::any_of(plan.notices.begin(), plan.notices.end(),
                       [&](const std::string& notice) { return notice.find(part) != std::string::npos; });
  }
};

}  // namespace dsat::host

#endif  // DSAT_TESTS_HOST_STUDY_PLAN_FIXTURE_H_
