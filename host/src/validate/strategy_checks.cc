// Each check runs the strategy on the SDK's test bench, which follows the host's rules.
#include "validate/strategy_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "dsat/base/utf8.h"
#include "dsat/random.h"
#include "plugin/plugin_library.h"
#include "plugin/profile_check.h"
#include "validate/apart_factory.h"
#include "validate/practice.h"

namespace dsat::host {
namespace {

using testing::Bench;

constexpr int kTrials = 30, kConcurrent = 4;
constexpr int kMostSteps = 2000;  // of one study
constexpr std::chrono::milliseconds kSlow{100}, kTooSlow{1000};

CheckOutcome failed(std::string reason) { return {CheckStatus::failed, std::move(reason), ""}; }
CheckOutcome warned(std::string reason) { return {CheckStatus::warned, std::move(reason), ""}; }

const dsat_factory& factory_of(const CheckContext& context) {
  return context.plugin.library ? *context.plugin.library->factory(context.plugin.kind) : apart_factory(context.plugin);
}

// An invented study. Throws an error of the strategy.
class Practice {
 public:
  Practice(const CheckContext& context, int trials = kTrials, int concurrent = kConcurrent,
           testing::AnswerFunction answer = practice_answer, const Json& options = Json::object())
      : doing_(context.doing),
        bench_(factory_of(context), context.plugin.id, practice_study(context.plugin, trials, concurrent),
               std::move(answer), options) {
    throw_error();
  }
  Bench& bench() { return bench_; }
  void start() {
    doing_("");
    bench_.start();
    throw_error();
  }
  bool step() {
    doing_("");
    const bool more = bench_.step();
    throw_error();
    if (++steps_ > kMostSteps) throw Error(fmt::format("it does not finish: {} trials have ended", kMostSteps));
    return more;
  }
  std::vector<std::string> run() {
    start();
    while (step()) {
    }
    return bench_.ops();
  }

 private:
  void throw_error() const {
    if (!bench_.error().empty()) throw Error(bench_.error());
  }
  const std::function<void(const std::string&)> doing_;
  Bench bench_;
  int steps_ = 0;
};

// Returns an order of ends that depends on the seed.
std::function<size_t(size_t)> shuffled(uint64_t seed) {
  return
      [random = Random(seed, 1)](size_t running) mutable { return static_cast<size_t>(random.uniform_below(running)); };
}

std::string digest(const std::vector<std::string>& ops) { return fmt::format("{}", fmt::join(ops, "\n")); }

// Returns the part of an op around the place where it differs from another op.
std::string part_at(const std::string& op, size_t place) {
  constexpr size_t kBefore = 40, kShown = 120;
  const size_t begin = place > kBefore ? place - kBefore : 0;
  return printable_line((begin > 0 ? "..." : "") + op.substr(begin, kShown) +
                        (op.size() > begin + kShown ? "..." : ""));
}

// Refused requests cost a study nothing, and a searcher may break a rule now and then. So this is only a warning.
std::string refusals(const Study& study, const std::vector<testing::Trial>& asked) {
  size_t count = 0;
  std::string first;
  for (const testing::Trial& trial : asked) {
    const std::string why = why_refused(study, trial.overrides);
    if (why.empty()) continue;
    if (++count == 1) first = why;
  }
  return count == 0 ? "" : fmt::format("{} of {} configurations would be refused: {}", count, asked.size(), first);
}

// Judges a strategy's study as the host would; the bench knows neither DeepSpeed's rules nor those of a profile.
CheckOutcome judge(const CheckContext& context, const Bench& done) {
  if (const std::string stray = done.stray_op(); !stray.empty()) return failed(stray);
  if (context.plugin.kind == PluginKind::profiler) {
    if (!done.profile().is_object()) return failed("it ends without a profile");
    const std::string problem = profile_problem(done.profile());
    if (!problem.empty()) return failed(fmt::format("a study would refuse its profile: {}", problem));
  }
  if (done.asked().empty()) return warned("it asks for no trial at all");
  const std::string refused = refusals(practice_study(context.plugin, kTrials, kConcurrent), done.asked());
  if (!refused.empty()) return warned(refused);
  if (!done.finished()) return warned("it does not call finish: its studies end as searcher_idle");
  return {};
}

// Returns "" or the first op in which two runs differ.
std::string difference(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  for (size_t i = 0; i < std::max(one.size(), other.size()); ++i) {
    const std::string a = i < one.size() ? one[i] : "nothing", b = i < other.size() ? other[i] : "nothing";
    if (a == b) continue;
    const auto place = static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
    return fmt::format("op {}: {} and {}", i, part_at(a, place), part_at(b, place));
  }
  return "";
}

}  // namespace

CheckOutcome check_options(const CheckContext& context) {
  for (const Json& option : context.plugin.options) {
    const std::string name = option["name"];
    std::vector<Json> values;
    for (const char* bound : {"min", "max"}) {
      if (option.contains(bound)) values.push_back(option[bound]);
    }
    for (const Json& choice : option.value("choices", Json::array())) values.push_back(choice);
    if (option["type"] == "bool") values = {true, false};
    for (const Json& value : values) {
      context.doing(fmt::format("it is created with --{} {}", name, value.dump()));
      const auto& standard = option["default"];
      if (value.is_number() && standard.is_number_integer() && !value.is_number_integer()) continue;
      try {
        Practice(context, kTrials, kConcurrent, practice_answer, {{name, value}});
      } catch (const Error& error) {
        return failed(fmt::format("--{} {}: {}", name, value.dump(), error.what()));
      }
    }
  }
  return {};
}

CheckOutcome check_life(const CheckContext& context) {
  context.doing("it is created and destroyed");
  { const Practice unused(context); }
  context.doing("it is destroyed in the middle of a study");
  {
    Practice left(context);
    left.start();
    left.step();
  }
  context.doing("it works through a study");
  Practice whole(context);
  whole.run();
  return judge(context, whole.bench());
}

CheckOutcome check_determinism(const CheckContext& context) {
  context.doing("it works through the same study twice");
  std::vector<std::string> runs[2];
  for (auto& ops : runs) {
    Practice practice(context);
    practice.bench().end_in_order(shuffled(7));
    ops = practice.run();
  }
  const std::string differs = difference(runs[0], runs[1]);
  if (!differs.empty()) return failed("the same events get different answers: " + differs);
  return {CheckStatus::passed, "", digest(runs[0])};
}

CheckOutcome check_state(const CheckContext& context) {
  const std::vector<std::string> whole = Practice(context).run();
  {
    Practice first(context);
    first.start();
    const bool saves = first.bench().keeps_state();
    if (!saves) return {CheckStatus::passed, "it keeps no state: a resume replays its events", ""};
  }
  for (const int steps : {0, 1, 3, 10}) {
    context.doing(fmt::format("it is saved and restored after {} trials", steps));
    Practice before(context), after(context);
    before.start();
    for (int i = 0; i < steps && before.step(); ++i) {
    }
    after.bench().restore_from(before.bench());
    for (Bench* bench : {&before.bench(), &after.bench()}) {
      if (!bench->error().empty()) return failed(fmt::format("after {} trials: {}", steps, bench->error()));
    }
    while (after.step()) {
    }
    const std::string differs = difference(whole, after.bench().ops());
    if (!differs.empty())
      return failed(fmt::format("restored after {} trials, it answers differently: {}", steps, differs));
  }
  return {};
}

CheckOutcome check_damaged_state(const CheckContext& context) {
  Practice practice(context);
  practice.start();
  for (int i = 0; i < 5 && practice.step(); ++i) {
  }
  if (!practice.bench().keeps_state()) return {};
  const std::string state = practice.bench().save();
  Random random(11, 1);
  std::vector<std::string> damaged{"", "{", "null", "[]", std::string(100, '\0')};
  for (int i = 1; i < 8; ++i) damaged.push_back(state.substr(0, state.size() * static_cast<size_t>(i) / 8));
  for (int i = 0; i < 40; ++i) {
    std::string text = state;
    for (int k = 0; k < 4 && !text.empty(); ++k) {
      text[random.uniform_below(text.size())] = static_cast<char>(random.uniform_below(256));
    }
    damaged.push_back(text);
  }
  for (size_t i = 0; i < damaged.size(); ++i) {
    context.doing(fmt::format("it is given a damaged state ({} bytes)", damaged[i].size()));
    Practice fresh(context);
    fresh.bench().restore(damaged[i]);
  }
  return {};
}

CheckOutcome check_outcomes(const CheckContext& context) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    context.doing(fmt::format("trials end in all ways and in any order (order {})", seed));
    Practice practice(context, kTrials, kConcurrent, troubled_answer);
    practice.bench().end_in_order(shuffled(seed));
    try {
      practice.run();
    } catch (const Error& error) {
      // A profile needs trials that do not fail; a search continues.
      if (context.plugin.kind == PluginKind::searcher) throw;
    }
  }
  return {};
}

CheckOutcome check_limits(const CheckContext& context) {
  for (const int trials : {1, 2, 7}) {
    for (const int concurrent : {1, 64}) {
      context.doing(fmt::format("the study has {} trials, {} at a time", trials, concurrent));
      Practice practice(context, trials, concurrent);
      practice.run();
    }
  }
  return {};
}

CheckOutcome check_latency(const CheckContext& context) {
  using Clock = std::chrono::steady_clock;
  context.doing("its answers are timed");
  Practice practice(context, 100, 8);
  std::vector<std::chrono::microseconds> times;
  const auto timed = [&](auto&& body) {
    const auto began = Clock::now();
    const bool more = body();
    times.push_back(std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began));
    return more;
  };
  timed([&] { return practice.start(), true; });
  while (timed([&] { return practice.step(); })) {
  }
  std::sort(times.begin(), times.end());
  const auto median = times[times.size() / 2], slowest = times.back();
  const std::string text =
      fmt::format("{:.2f} ms a trial, the slowest {:.1f} ms", static_cast<double>(median.count()) / 1e3,
                  static_cast<double>(slowest.count()) / 1e3);
  return {median > kSlow || slowest > kTooSlow ? CheckStatus::warned : CheckStatus::passed, text, ""};
}

}  // namespace dsat::host
