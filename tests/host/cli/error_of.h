// What a call says when it refuses.
#ifndef DSAT_TESTS_HOST_CLI_ERROR_OF_H_
#define DSAT_TESTS_HOST_CLI_ERROR_OF_H_

#include <string>

#include "dsat/error.h"

namespace dsat::cli {

// The message of the dsat::Error that `call` throws; "no error" if it throws none.
template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace dsat::cli

#endif  // DSAT_TESTS_HOST_CLI_ERROR_OF_H_
