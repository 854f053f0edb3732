// What a plugin has no business to change in its process: read before and after it has worked.
//
// Threading: any thread; what it reads is the process's. Errors: none, what cannot be read is left out.
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

// "changes the current folder; leaves descriptor 5 open (/dev/null)"; "": nothing but threads has changed.
std::string changes(const Surroundings& before, const Surroundings& after);

}  // namespace dsat::host

#endif  // DSAT_HOST_VALIDATE_SURROUNDINGS_H_
