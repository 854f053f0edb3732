// The order in which the groups of parameters are used in a micro step, and from it what comes next.
//
// What one micro step did is the prediction for the next. As soon as a step uses another group than predicted, nothing
// is predicted for the rest of it. Every rank that uses the same groups predicts the same.
// Units: groups by number, distances in elements of their sizes. Threading: one thread. Errors: none.
#ifndef DSAT_TRAINER_LAYOUT_USE_TRACE_H_
#define DSAT_TRAINER_LAYOUT_USE_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace dsat::trainer {

class UseTrace {
 public:
  explicit UseTrace(std::vector<int64_t> group_sizes) : sizes_(std::move(group_sizes)) {}

  // A micro step begins: what was recorded is the prediction from now on.
  void begin();
  // Groups are used again and again by neighbouring operations: that is one use.
  void use(size_t group);

  // The groups to come, next first; empty where nothing is predicted.
  struct Range {
    const size_t* first;
    const size_t* last;
    const size_t* begin() const { return first; }
    const size_t* end() const { return last; }
  };
  Range upcoming() const;
  // Elements of the groups that are used before `group` is used again; nullopt: it is not, as far as is known.
  std::optional<int64_t> distance_to(size_t group) const;

  // A hash of all uses so far, in their order: equal on ranks that have used the same. Below 2^52.
  uint64_t fingerprint() const { return fingerprint_ >> 12; }

 private:
  std::vector<int64_t> sizes_;
  std::vector<size_t> predicted_, recorded_;
  bool is_as_predicted_ = true;
  uint64_t fingerprint_ = 14695981039346656037u;  // FNV-1a
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_LAYOUT_USE_TRACE_H_
