// Addresses for parameters that are not there: who reads them by a pointer gets a line with the parameter's name.
//
// Operations are seen by StorageUseWatch, and a pointer that somebody has taken with data_ptr() is not. So a group that
// is not gathered lies in a range of addresses without memory, and a handler of SIGSEGV knows these ranges. It ends the
// process with the reason (watch/last_words.h); all other faults go their usual way.
// Threading: made and ended on the compute thread. Errors: none; where the system gives no addresses there is no range.
#ifndef DSAT_TRAINER_AUTOGRAD_ABSENT_MEMORY_H_
#define DSAT_TRAINER_AUTOGRAD_ABSENT_MEMORY_H_

#include <cstddef>
#include <string>
#include <vector>

namespace dsat::trainer {

class AbsentMemory {
 public:
  struct Part {
    size_t end;        // bytes from data()
    std::string text;  // the reason for the end
  };
  explicit AbsentMemory(std::vector<Part> parts);
  ~AbsentMemory();
  AbsentMemory(const AbsentMemory&) = delete;
  AbsentMemory& operator=(const AbsentMemory&) = delete;

  void* data() const { return data_; }  // nullptr: there is no range

 private:
  friend struct Ranges;

  void* data_ = nullptr;
  size_t bytes_ = 0;
  std::vector<Part> parts_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_AUTOGRAD_ABSENT_MEMORY_H_
