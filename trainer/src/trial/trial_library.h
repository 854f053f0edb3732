// A user's trial in a shared library.
//
// Errors: dsat::Error, one line that names the library. Threading: one thread, before ranks are started.
#ifndef DSAT_TRAINER_TRIAL_TRIAL_LIBRARY_H_
#define DSAT_TRAINER_TRIAL_TRIAL_LIBRARY_H_

#include <memory>
#include <string>

#include "dsat/trainer/trial.h"

namespace dsat::trainer {

// Stays loaded until the process ends: objects of its classes may outlive this one.
class TrialLibrary {
 public:
  // Loads it and compares its versions with this program's.
  explicit TrialLibrary(const std::string& path);

  std::string name() const { return entry_->name; }
  // Errors of the trial's constructor are thrown again with its name in front, LibTorch's without their backtrace.
  std::unique_ptr<Trial> make(TrialContext& context) const;

 private:
  const TrialEntry* entry_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_TRIAL_TRIAL_LIBRARY_H_
