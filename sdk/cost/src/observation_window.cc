// Keeps the trials of each setup by micro batch. A fit needs the ends of the line and the bounds at the ceiling, so a
// trial between two kept ones is dropped.
#include "dsat/cost/observation_window.h"

#include <algorithm>
#include <map>
#include <optional>

#include "cost/posterior/setups.h"

namespace dsat::cost {
namespace {

constexpr size_t kMostPeaks = 4;  // a setup: the smallest and the three largest micro batches

struct SetupTrials {
  uint64_t first = 0, last = 0;              // numbers of its first and last observation
  std::map<int64_t, Observation> with_peak;  // by micro batch
  std::optional<Observation> fitted, out_of_memory;

  void add(const Observation& observation) {
    const int64_t micro_batch = observation.setup.micro_batch;
    if (observation.out_of_memory) {
      if (!out_of_memory || micro_batch < out_of_memory->setup.micro_batch) out_of_memory = observation;
    } else if (!observation.peak_bytes) {
      if (!fitted || micro_batch > fitted->setup.micro_batch) fitted = observation;
    } else {
      const auto [it, added] = with_peak.emplace(micro_batch, observation);
      // A repeated trial may differ a little. The higher peak has to fit.
      if (!added) it->second.peak_bytes = std::max(*it->second.peak_bytes, *observation.peak_bytes);
      if (with_peak.size() > kMostPeaks) with_peak.erase(std::next(with_peak.begin()));
    }
  }
};

}  // namespace

// A search returns to the setups that do well, so an old setup will hardly be asked about again.
struct ObservationWindow::State {
  size_t most_setups;
  uint64_t count = 0;
  std::map<Setup, SetupTrials, OrderOfSetups> setups;

  // Removes the setup that was seen least recently, but never the first one.
  void make_room() {
    auto oldest = setups.end();
    for (auto it = setups.begin(); it != setups.end(); ++it) {
      if (it->second.first == 0) continue;
      if (oldest == setups.end() || it->second.last < oldest->second.last) oldest = it;
    }
    if (oldest != setups.end()) setups.erase(oldest);
  }
};

ObservationWindow::ObservationWindow(size_t most_setups) : state_(new State{std::max<size_t>(2, most_setups), 0, {}}) {}
ObservationWindow::~ObservationWindow() = default;
ObservationWindow::ObservationWindow(ObservationWindow&&) noexcept = default;
ObservationWindow& ObservationWindow::operator=(ObservationWindow&&) noexcept = default;

void ObservationWindow::add(const Observation& observation) {
  auto it = state_->setups.find(observation.setup);
  if (it == state_->setups.end()) {
    if (state_->setups.size() == state_->most_setups) state_->make_room();
    it = state_->setups.emplace(observation.setup, SetupTrials{state_->count, state_->count, {}, {}, {}}).first;
  }
  it->second.add(observation);
  it->second.last = state_->count++;
}

std::vector<Observation> ObservationWindow::observations() const {
  std::vector<const SetupTrials*> in_order;
  for (const auto& [setup, trials] : state_->setups) in_order.push_back(&trials);
  std::sort(in_order.begin(), in_order.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
  std::vector<Observation> all;
  for (const SetupTrials* trials : in_order) {
    for (const auto& [micro_batch, observation] : trials->with_peak) all.push_back(observation);
    if (trials->fitted) all.push_back(*trials->fitted);
    if (trials->out_of_memory) all.push_back(*trials->out_of_memory);
  }
  return all;
}

}  // namespace dsat::cost
