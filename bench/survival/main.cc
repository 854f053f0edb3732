// bench_survival: does the configuration that a study hands back still fit after a thousand further steps, how fast is
// it, and how many of the user's keys does it change? Whole studies of the host, phases after the search included, on
// simulated jobs whose memory drifts: drift.h.
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <iostream>
#include <map>
#include <vector>

#include "dsat/base/split.h"
#include "search/surfaces/surfaces.h"
#include "survival/drift.h"
#include "survival/whole_study.h"

namespace {

namespace po = boost::program_options;
using dsat::split;
using namespace dsat::bench;  // NOLINT: a program of one file

constexpr int kFurtherSteps = 1000;  // what is asked of the winner

struct Tally {
  int studies = 0, winners = 0, survivors = 0;
  std::vector<double> speeds;  // true, of each study's winner; 0: none
  std::vector<int> changed;    // keys of each winner
};

void run_one(const Surface& surface, Drift drift, WholeStudySetting setting, bool names_failures, Tally& tally) {
  const double room = surface.job.usable_share * surface.job.device_memory;
  const auto peak_bytes = [&](const SurfacePoint& point, int steps, uint64_t run) {
    return drifted_peak_bytes(drift, surface, point, steps, dsat::mix64(surface.id) ^ setting.seed, run);
  };
  setting.peak_share = [&](const SurfacePoint& point, int steps, uint64_t run) {
    return peak_bytes(point, steps, run) / surface.truth(point).peak_bytes;
  };
  const WholeStudy study = run_whole_study(surface, setting);
  ++tally.studies;
  tally.speeds.push_back(study.throughput);
  if (study.best.is_null()) return;
  ++tally.winners;
  tally.changed.push_back(study.keys_changed);
  // A fresh run of so many steps: another draw than any trial had.
  const uint64_t fresh = dsat::mix64(setting.seed ^ 0x5eed);
  const bool survives = peak_bytes(point_of(study.best), kTrialSteps + kFurtherSteps, fresh) <= room;
  tally.survivors += survives ? 1 : 0;
  if (!survives && names_failures) {
    std::cout << fmt::format("  {} seed {}: {}\n", surface.name, setting.seed, study.best.dump());
  }
}

std::vector<Surface> surfaces_of(const po::variables_map& given) {
  const auto seed = static_cast<uint64_t>(given["family-seed"].as<int>());
  const bool reports_peaks = given["peaks"].as<std::string>() != "silent";
  std::vector<Surface> all;
  for (const std::vector<Surface>& family : {six_surfaces(seed), job_surfaces(seed, 20), odd_surfaces(seed)}) {
    for (const Surface& surface : family) {
      all.push_back(reports_peaks ? reporting(surface) : silent(surface));
      all.back().offload_axis = false;
    }
  }
  return all;
}

// How much slower the winners are than those of the first setting, in percent: the mean over studies that both ended.
double cost_percent(const Tally& tally, const Tally& first) {
  double sum = 0;
  int both = 0;
  for (size_t i = 0; i < tally.speeds.size(); ++i) {
    if (tally.speeds[i] <= 0 || first.speeds[i] <= 0) continue;
    sum += 1 - tally.speeds[i] / first.speeds[i];
    ++both;
  }
  return both > 0 ? 100 * sum / both : 0;
}

std::string row(const std::string& name, const WholeStudySetting& setting, const Tally& tally, const Tally& first) {
  const std::vector<int>& changed = tally.changed;
  const std::string keys =
      changed.empty() ? "-"
                      : fmt::format("{}, {}", lower_median(changed), *std::max_element(changed.begin(), changed.end()));
  return fmt::format("{:<12} {:>7} {:>7} {:>5} {:>8} {:>8} {:>9} {:>9.1f} {:>7.2f} {:>8}\n", name,
                     setting.memory_margin < 0 ? "default" : fmt::format("{}", setting.memory_margin),
                     setting.verify_steps, setting.keeps_all_changes ? "yes" : "no", tally.studies, tally.winners,
                     tally.survivors, 100.0 * tally.survivors / std::max(tally.winners, 1), cost_percent(tally, first),
                     keys);
}

po::options_description described() {
  po::options_description options("bench_survival [options]");
  auto add = options.add_options();
  add("help", "this text");
  add("margins", po::value<std::string>()->default_value("default"), "--memory-margin, several by commas");
  add("verify", po::value<std::string>()->default_value("0"), "--verify, several by commas");
  add("keep-all-changes", po::value<std::string>()->default_value("no"), "yes, no or yes,no: --keep-all-changes");
  add("drifts", po::value<std::string>(), "none, jitter, fragments, leak, lengths; several by commas; default: all");
  add("peaks", po::value<std::string>()->default_value("reported"), "reported (the memory probe's case) or silent");
  add("trials", po::value<int>()->default_value(24), "--max-trials");
  add("seeds", po::value<int>()->default_value(1), "studies of each surface");
  add("family-seed", po::value<int>()->default_value(2), "draws the families six, jobs and odd");
  add("searcher", po::value<std::string>()->default_value("guided"), "a plugin");
  add("failures", "name each winner that does not survive");
  return options;
}

// A row for each drift. The first setting of each is what the others' cost is measured against.
void run_setting(WholeStudySetting setting, const std::vector<Surface>& surfaces, const po::variables_map& given,
                 std::map<std::string, Tally>& first) {
  for (const DriftKind& kind : kDrifts) {
    const std::string wanted = given.count("drifts") != 0 ? given["drifts"].as<std::string>() : kind.name;
    if (("," + wanted + ",").find(fmt::format(",{},", kind.name)) == std::string::npos) continue;
    Tally tally;
    for (const Surface& surface : surfaces) {
      for (int seed = 1; seed <= given["seeds"].as<int>(); ++seed) {
        setting.seed = static_cast<uint64_t>(seed);
        run_one(surface, kind.drift, setting, given.count("failures") != 0, tally);
      }
    }
    std::cout << row(kind.name, setting, tally, first.emplace(kind.name, tally).first->second) << std::flush;
  }
}

void run(const po::variables_map& given) {
  const std::vector<Surface> surfaces = surfaces_of(given);
  std::cout << fmt::format("{:<12} {:>7} {:>7} {:>5} {:>8} {:>8} {:>9} {:>9} {:>7} {:>8}\n", "drift", "margin",
                           "verify", "all", "studies", "winners", "survivors", "survive %", "cost %", "keys");
  std::map<std::string, Tally> first;
  for (const std::string& margin : split(given["margins"].as<std::string>(), ',')) {
    for (const std::string& verify : split(given["verify"].as<std::string>(), ',')) {
      for (const std::string& all : split(given["keep-all-changes"].as<std::string>(), ',')) {
        WholeStudySetting setting;
        setting.searcher = given["searcher"].as<std::string>();
        setting.max_trials = given["trials"].as<int>();
        if (margin != "default") setting.memory_margin = std::stod(margin);
        setting.verify_steps = std::stoi(verify);
        setting.keeps_all_changes = all == "yes";
        run_setting(setting, surfaces, given, first);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    po::variables_map given;
    po::store(po::parse_command_line(argc, argv, described()), given);
    po::notify(given);
    if (given.count("help") != 0) return std::cout << described(), 0;
    run(given);
  } catch (const std::exception& e) {
    return std::cerr << "bench_survival: " << e.what() << '\n', 2;
  }
  return 0;
}
