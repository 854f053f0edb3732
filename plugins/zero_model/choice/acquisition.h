// What to try next: expected improvement times the probability of fitting, searched over the lattice.
//
// The gain of a trial is how much the best posterior mean is expected to rise by it (the knowledge gradient of one
// point: expected improvement, Jones et al. 1998, with the noise of a measurement counted: Frazier, Powell and Dayanik
// 2009). Measured points are candidates too: measuring one again is worth something where noise hides the order of
// the best. Arms are searched by coordinate ascent from the best of each stage; of each arm the micro batches at the
// ceiling, round ones below it and the neighbours of the best are looked at.
// Threading: one thread. Draws: by (seed, trials so far).
#ifndef DSAT_PLUGINS_ZERO_MODEL_CHOICE_ACQUISITION_H_
#define DSAT_PLUGINS_ZERO_MODEL_CHOICE_ACQUISITION_H_

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "dsat/random.h"
#include "zero_model/choice/joint_samples.h"
#include "zero_model/choice/surrogate.h"

namespace dsat::guided {

struct Proposal {
  Point point;
  bool repeat = false;
  double gain = 0;         // expected, of the logarithm of the metric
  double value = 0;        // the gain less the price of the risk
  double fits = 1;         // probability
  double improvement = 0;  // of the point's mean over the best
  double deviation = 0;    // of the point's goodness
  std::string look{};      // of a look around: what is not known there
};

// By value; ties by what the points are.
bool better(const Proposal& a, const Proposal& b);

// Highest probabilities of running out of memory: of any proposal, and of one that promises far more than all others.
struct Risk {
  double usual = 0.05;
  double daring = 0.05;  // at least the usual
  double price = 0;      // gain that a trial must promise more for certainly running out of memory

  // What is left of a gain when the risk beyond the usual one is paid for.
  double less_price(double gain, double fits) const { return gain - price * std::max(0.0, 1 - fits - usual); }
};

class Planner {
 public:
  // `beside`: other trials will be at work when a proposal is tried.
  Planner(Lattice& lattice, const Beliefs& beliefs, uint64_t seed, bool beside)
      : lattice_(lattice), beliefs_(beliefs), seed_(seed), beside_(beside) {}

  // Pending trials are drawn with the next one, and must not narrow what is believed.
  bool draws_pending() const { return beside_ && beliefs_.young(); }

  // Of the last search, best first: what serves further decisions where each cannot have a search of its own.
  std::vector<Proposal> ranked() const;

  // After next(): where nothing was measured yet, whatever the models say. nullopt: no such place that fits.
  // `boldly`: likely to fit is enough, for when the study would end otherwise.
  std::optional<Proposal> look_around(bool boldly);

  // After next(): in a stage that no trial has touched, if it may be the best for all that is known.
  std::optional<Proposal> look_at_new_stage();

  // What each choice of the best trial is worth: a line each, the one that matters most first.
  std::vector<std::string> effects();

  // nullopt: nothing is left to try.
  std::optional<Proposal> next(const std::vector<Point>& pending, const Risk& risk, uint64_t draw);

 private:
  struct Visit {
    int64_t top = -1;   // the largest rank that fits at the daring risk; -1: none
    int64_t safe = -1;  // and at the usual one
    Proposal best;      // of all
    std::optional<Proposal> best_safe;
    bool any = false;
  };

  std::vector<const Arm*> starts(uint64_t draw);
  const Arm* project(const Arm& from, const config::StageSpace& onto);
  const std::vector<const Arm*>& neighbours(const Arm& arm);
  void climb(std::vector<const Arm*> front, int64_t hint);
  void visit(const std::vector<const Arm*>& arms, bool thorough, int64_t hint);
  int64_t top_rank(const Arm& arm, int64_t hint, double risk) const;
  std::vector<int64_t> micro_batches(const Arm& arm, const Visit& visit, bool thorough) const;
  void find_tops(const Arm& arm, int64_t hint, Visit& visit) const;
  std::optional<Proposal> choose() const;
  std::optional<Proposal> next_alone(uint64_t draw);
  std::optional<Proposal> next_beside(uint64_t draw);
  void draw_round(uint64_t draw);
  std::vector<Point> candidates(uint64_t draw) const;
  std::map<int, std::vector<Point>> promising() const;
  std::vector<const Arm*> spread_arms(uint64_t draw) const;
  std::vector<int64_t> ladder(const Arm& arm, const Visit& visit, bool fine) const;
  std::vector<Proposal> score(const std::vector<Point>& points) const;
  void consider_repeats(std::optional<Proposal>& best) const;
  void round_down(Proposal& proposal) const;
  void save_memory(Proposal& proposal);
  bool taken(const Point& point) const;
  struct Touched;
  Touched touched(int stage) const;
  std::optional<Proposal> look_at(const Arm* arm, int64_t micro_batch, const std::string& why);
  std::optional<Proposal> look_along(const Touched& seen, const Arm& arm, int64_t top);
  std::optional<Proposal> look_across(const Touched& seen, const config::StageSpace& stage, bool numeric);
  std::optional<Proposal> safest(uint64_t draw);

  Lattice& lattice_;
  const Beliefs& beliefs_;
  uint64_t seed_;
  bool beside_;
  Risk risk_;
  double look_risk_ = 0;  // of a look around
  std::vector<Point> pending_;
  std::optional<Beliefs::Best> incumbent_;
  Point anchor_;             // the incumbent, or what runs and is believed better
  double pending_best_ = 0;  // goodness of the best that is running
  double pending_fits_ = 0;  // and its probability of fitting
  std::map<const Arm*, Visit> visits_;
  std::unordered_map<const Arm*, std::vector<const Arm*>> neighbours_;  // known ones
  std::vector<Proposal> scored_;
  std::unique_ptr<JointDraws> round_;  // of the trials that were known when this many had ended
  size_t round_ended_ = 0;
  std::set<std::pair<int, std::string>> looked_;  // stage and what was not known: looked at once
};

}  // namespace dsat::guided

#endif  // DSAT_PLUGINS_ZERO_MODEL_CHOICE_ACQUISITION_H_
