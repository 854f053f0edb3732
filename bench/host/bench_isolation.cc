// What a call costs more when its plugin runs in a process of its own.
//
//   bench_isolation PLUGINS_DIR DSAT_PLUGIN_HOST [--trials N]
//
// The same events go to a searcher in this process and to one apart; its answers have to be the same. It prints the
// median and the tenth percentile of all calls' times, which a busy machine disturbs least.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "plugin/isolated_strategy.h"
#include "plugin/plugin_strategy.h"
#include "validate/practice.h"

namespace {

using namespace dsat::host;
using dsat::Json;
using Clock = std::chrono::steady_clock;

class Grants : public RequestAnswers {
 public:
  explicit Grants(uint64_t most) : most_(most) {}
  std::optional<uint64_t> create_trial(const Op&) override {
    return next_ == most_ ? std::nullopt : std::optional<uint64_t>(next_++);
  }
  uint64_t next_id() const override { return next_; }

 private:
  uint64_t next_ = 0, most_;
};

struct Times {
  std::vector<double> us;
  std::string answers;
};

// Plays a study: each trial completes in the order of ids, with a throughput that its id gives.
Times play(Strategy& strategy, const Json& study, uint64_t trials) {
  Times times;
  Grants answers(trials);
  std::deque<uint64_t> open;
  bool finished = false;
  const auto hand_over = [&](const StrategyEvent& event) {
    const auto began = Clock::now();
    const std::vector<Op> ops = strategy.handle(event, answers);
    times.us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - began).count());
    times.answers += to_json(ops).dump();
    for (const Op& op : ops) {
      if (op.kind == Op::Kind::create_trial && op.trial) open.push_back(*op.trial);
      finished |= op.kind == Op::Kind::finish;
    }
  };
  StrategyEvent start;
  start.study = study;
  hand_over(start);
  while (!open.empty() && !finished) {
    StrategyEvent event;
    event.trial = open.front();
    open.pop_front();
    event.kind = StrategyEvent::Kind::result;
    event.metrics = {{"throughput", 100.0 + static_cast<double>(event.trial * 37 % 101)}, {"latency", 8000.0}};
    hand_over(event);
    if (finished) break;
    event.kind = StrategyEvent::Kind::exited;
    event.metrics = Json::object();
    event.peak_bytes = 4'000'000'000;
    hand_over(event);
  }
  std::sort(times.us.begin(), times.us.end());
  return times;
}

double share(const Times& times, double part) {
  return times.us[static_cast<size_t>(part * static_cast<double>(times.us.size() - 1))];
}

bool compare(const std::string& file, const PluginProcesses& apart, uint64_t trials) {
  PluginProcesses here = apart;
  here.isolation = Isolation::none;
  const PluginInfo inside = find_strategy(file, PluginKind::searcher, here).value();
  const PluginInfo outside = find_strategy(file, PluginKind::searcher, apart).value();
  const Json options = parse_plugin_options(inside, Json::object()).value();
  dsat::Study study = practice_study(inside, static_cast<int>(trials), 8);
  const auto log = [](int, std::string_view) {};
  const Times in_process = play(*PluginStrategy::create(inside, options, 42, log), study.to_json(), trials);
  const Times isolated = play(*IsolatedStrategy::create(outside, options, 42, apart, log), study.to_json(), trials);
  std::printf(
      "%-8s %5zu calls: in process median %.1f us (10 %%: %.1f), isolated %.1f us (%.1f): %.1f us more (%.1f)%s\n",
      inside.name.c_str(), isolated.us.size(), share(in_process, 0.5), share(in_process, 0.1), share(isolated, 0.5),
      share(isolated, 0.1), share(isolated, 0.5) - share(in_process, 0.5),
      share(isolated, 0.1) - share(in_process, 0.1), in_process.answers == isolated.answers ? "" : "; OTHER ANSWERS");
  return in_process.answers == isolated.answers;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench_isolation PLUGINS_DIR DSAT_PLUGIN_HOST [--trials N]\n");
    return 2;
  }
  const uint64_t trials =
      argc == 5 && std::strcmp(argv[3], "--trials") == 0 ? std::strtoull(argv[4], nullptr, 10) : 500;
  PluginProcesses apart;
  apart.isolation = Isolation::process;
  apart.plugin_host = argv[2];
  bool alike = true;
  for (const char* name : {"random", "asha"}) {
    alike &= compare(std::string(argv[1]) + "/lib" + name + ".so", apart, trials);
  }
  alike &= compare(std::string(argv[1]) + "/libguided.so", apart, std::min<uint64_t>(trials, 40));
  return alike ? 0 : 1;
}
