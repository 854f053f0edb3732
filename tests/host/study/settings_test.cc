// The tables of settings: no field is missing from its table, and every field survives the journal.
#include "dsat/host/settings.h"

#include <gmock/gmock.h>

#include <set>

#include "plan/plan.h"

namespace dsat::host {
namespace {

template <class Group>
int rows() {
  int count = 0;
  Group group;
  Group::visit(group, [&](const Setting&, auto&) { ++count; });
  return count;
}

// A structured binding has a name for every field: a new field does not compile here before it is counted.
TEST(Settings, EveryFieldHasARow) {
  [[maybe_unused]] const auto& [l1, l2, l3, l4, l5, l6, l7, l8] = StudyLimits();
  EXPECT_EQ(rows<StudyLimits>(), 8);
  [[maybe_unused]] const auto& [o1, o2, o3, o4, o5, o6] = Comparison();
  EXPECT_EQ(rows<Comparison>(), 6);
  [[maybe_unused]] const auto& [t1, t2] = TrialTimeouts();
  EXPECT_EQ(rows<TrialTimeouts>(), 2);
  [[maybe_unused]] const auto& [s1, s2] = SearchTarget();
  EXPECT_EQ(rows<SearchTarget>(), 2);
  [[maybe_unused]] const auto& [b1, b2, b3, b4] = BatchBounds();
  EXPECT_EQ(rows<BatchBounds>(), 4);
  [[maybe_unused]] const auto& [e1, e2] = SearchSettings();
  EXPECT_EQ(rows<SearchSettings>(), 2);
  [[maybe_unused]] const auto& [d1, d2, d3, d4, d5, d6, d7] = SlotOptions();
  EXPECT_EQ(rows<SlotOptions>(), 7);
  [[maybe_unused]] const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10] = TrialMeasurement();
  EXPECT_EQ(rows<TrialMeasurement>(), 10);
  [[maybe_unused]] const auto& [c1, c2, c3, c4, c5, c6, c7, c8, c9] = TrialSetup();
  EXPECT_EQ(rows<TrialSetup>(), 9);
  [[maybe_unused]] const auto& [p1, p2, p3] = PluginProcesses();
  EXPECT_EQ(rows<PluginProcesses>(), 3);
  // Its first, the kind of runner, is no row: a simulation has another one.
  [[maybe_unused]] const auto& [r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12] = ClusterOptions();
  EXPECT_EQ(rows<ClusterOptions>(), 11);
}

// Gives a field another value than its default.
struct Change {
  void operator()(const Setting&, bool& value) const { value = !value; }
  void operator()(const Setting&, double& value) const { value += 0.25; }
  void operator()(const Setting&, std::string& value) const { value += "?"; }
  void operator()(const Setting&, std::filesystem::path& value) const { value = "/another"; }
  void operator()(const Setting&, std::chrono::milliseconds& value) const { value += std::chrono::milliseconds(7); }
  void operator()(const Setting&, TrialCwd& value) const { value = TrialCwd::copy; }
  void operator()(const Setting&, Isolation& value) const { value = Isolation::process; }
  void operator()(const Setting&, Json& value) const { value = {{"a", 1}}; }
  void operator()(const Setting&, std::pair<std::string, std::string>& value) const { value = {"key", "--flag"}; }
  template <class T>
  void operator()(const Setting& setting, std::optional<T>& value) const {
    (*this)(setting, value.emplace());
  }
  template <class T>
  void operator()(const Setting& setting, std::vector<T>& value) const {
    (*this)(setting, value.emplace_back());
  }
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  void operator()(const Setting&, T& value) const {
    value += 7;
  }
};

TEST(Settings, EveryFieldOfAPlanSurvivesTheJournal) {
  Plan plan;
  Plan::visit(plan, Change());
  const Json defaults = settings_to_json(Plan()), changed = settings_to_json(plan);
  std::set<std::string> keys;
  Plan::visit(plan, [&](const Setting& setting, const auto&) {
    EXPECT_TRUE(keys.insert(setting.key).second) << setting.key;
    EXPECT_NE(changed.at(setting.key), defaults.at(setting.key)) << setting.key;
  });
  EXPECT_EQ(keys.size(), changed.size());
  Plan back;
  read_settings(Json::parse(changed.dump()), back);
  EXPECT_EQ(settings_to_json(back), changed);
}

TEST(Settings, OnlyALaterSettingMayBeMissing) {
  const Json all = settings_to_json(Plan());
  Plan plan;
  Plan::visit(plan, [&](const Setting& setting, const auto&) {
    Json json = all;
    json.erase(setting.key);
    Plan back;
    if (setting.is_later) {
      EXPECT_NO_THROW(read_settings(json, back)) << setting.key;
    } else {
      EXPECT_THROW(read_settings(json, back), Error) << setting.key;
    }
  });
}

}  // namespace
}  // namespace dsat::host
