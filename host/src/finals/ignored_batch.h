// Does the script's batch follow its configuration?
//
// Purpose: a script with a batch size of its own takes the same time and memory at every micro batch, and so does a
//   script whose data set is smaller than a batch. Its throughput is computed from the configured batch and grows with
//   it, so a search finds nothing but large numbers. There are two tests. A pair of trials that differ in their batch
//   sizes alone gives a warning. All measured trials together, whatever else differs between them, give the proof: a
//   line is fitted to the logarithms of time and micro batch, and the upper end of its 95 % interval says by how much
//   a step may have grown.
// Threading: control thread. Errors: none. Cost: the proof's test costs the same for each trial, however many there
//   are.
#ifndef DSAT_HOST_FINALS_IGNORED_BATCH_H_
#define DSAT_HOST_FINALS_IGNORED_BATCH_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

// The least squares line through points that come one by one.
class FittedLine {
 public:
  void add(double x, double y);
  double count() const { return count_; }
  // The upper end of the 95 % interval of the slope; infinite for fewer than three points, or all at one x.
  double highest_slope() const;

 private:
  double count_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0, yy_ = 0;
};

class IgnoredBatch {
 public:
  // Adds an ended trial, in any order.
  void add(const Trial& trial);
  // The two trials that show best that this script's throughput means nothing, in words; nullopt: there is no proof.
  std::optional<std::string> proof() const;

  // Compares this trial with those of earlier calls: of two configurations that differ in their batch sizes alone, did
  // one with a much larger micro batch take no more time and no other memory? Returns a warning for the user, once.
  std::optional<std::string> compare(const Trial& trial);

 private:
  // What equal times and peaks show depends on where the peak comes from.
  struct Evidence {
    double factor;                           // micro batches that differ by this factor or more are distinguishable
    std::optional<double> memory_tolerance;  // two peaks within this share are equal; nullopt: they say nothing
  };
  struct Step {
    uint64_t trial = 0;
    double micro_batch = 0, latency_us = 0, peak_bytes = 0;
    Evidence evidence{};
  };
  // Trials with the same accumulation on as many devices: only those are comparable.
  struct Group {
    FittedLine times, peaks;
    Step smallest, largest;
    std::set<int> stages;
    double factor = 0;  // the largest of its trials' evidence: the weakest one counts
  };
  static Evidence evidence_of(const TrialRecord& record);
  static std::optional<Step> step_of(const Trial& trial);
  static bool took_the_same(const Step& small, const Step& large);
  static bool is_flat(const Group& group);

  std::map<std::pair<double, double>, Group> groups_;
  bool fills_memory_ = false;                       // a trial ran out of it, so the script follows its configuration
  std::map<std::string, std::vector<Step>> alike_;  // by the configuration without its batch sizes
  bool has_warned_ = false;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_FINALS_IGNORED_BATCH_H_
