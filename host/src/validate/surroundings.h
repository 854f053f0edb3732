// The parts of a process that a plugin must not change, read before and after it has run.
// Threading: any thread; reads the process's state. Errors: none; what cannot be read is left out.
#ifndef DSAT_HOST_VALIDATE_SURROUNDINGS_H_
#define DSAT_HOST_VALIDATE_SURROUNDINGS_H_

#include <map>
#include <string>
#include <vector>

namespace dsat::host {

struct Surroundings {
  std::map<std::string, std::string> state;        // "the current folder": "/tmp"
  std::map<std::string, std::string> descriptors;  // "5": "/dev/null"
  size_t threads = 0;

  static Surroundings now();
};

// Returns "changes the current folder; leaves descriptor 5 open (/dev/null)"; "": no changes except threads.
std::string changes(const Surroundings& before, const Surroundings& after);

}  // namespace dsat::host

#endif  // DSAT_HOST_VALIDATE_SURROUNDINGS_H_
