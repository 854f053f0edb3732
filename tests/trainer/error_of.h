// What a call complains of.
#ifndef DSAT_TESTS_TRAINER_ERROR_OF_H_
#define DSAT_TESTS_TRAINER_ERROR_OF_H_

#include <functional>
#include <string>

#include "dsat/error.h"

namespace dsat::trainer {

inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace dsat::trainer

#endif  // DSAT_TESTS_TRAINER_ERROR_OF_H_
