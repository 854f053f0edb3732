// The border of exceptions: inside, the host library throws dsat::Error; its public functions return a Status.
//
// Every public function calls as_result once, so no exception leaves the library. DSAT_INVALID_ARGUMENT (the user's
// mistake) becomes Status::invalid; all other codes and exceptions become Status::internal. or_throw is the opposite.
// Threading: no state of its own.
#ifndef DSAT_HOST_BASE_GUARDED_H_
#define DSAT_HOST_BASE_GUARDED_H_

#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "dsat/error.h"
#include "dsat/host/status.h"

namespace dsat::host {

// A failure of the machine, not a mistake of the user.
inline Error internal_error(const std::string& message) { return {DSAT_INTERNAL, message}; }

// Returns "cannot copy the model /a/b: Permission denied" instead of the text of std::filesystem.
inline Error file_error(const std::filesystem::filesystem_error& error, const std::string& action) {
  const std::string where = error.path1().string();
  return internal_error("cannot " + action + (where.empty() ? "" : " " + where) + ": " + error.code().message());
}

// Converts a caught exception.
inline Status status_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return Status::internal("not enough memory");
  const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  if (file != nullptr) return Status::internal(file_error(*file, "use").what());
  const auto* own = dynamic_cast<const Error*>(&error);
  const bool invalid = own != nullptr && own->code() == DSAT_INVALID_ARGUMENT;
  return invalid ? Status::invalid(error.what()) : Status::internal(error.what());
}

// Converts the exception that is being handled, of any type; only for catch (...).
inline Status status_of_caught() {
  try {
    throw;
  } catch (const std::exception& error) {
    return status_of(error);
  } catch (...) {
    return Status::internal("something was thrown that is no std::exception");
  }
}

// Returns the value of `body` as a Result, or a Status if it has no value; an exception becomes a failure.
template <class Body>
auto as_result(Body&& body)
    -> std::conditional_t<std::is_void_v<std::invoke_result_t<Body>>, Status, Result<std::invoke_result_t<Body>>> {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Body>>) {
      body();
      return Status();
    } else {
      return body();
    }
  } catch (...) {
    return status_of_caught();
  }
}

// Throws the failure of a Status or Result as dsat::Error.
inline void or_throw(const Status& status) {
  if (status.ok()) return;
  const bool invalid = status.code() == Status::Code::invalid;
  throw Error(invalid ? DSAT_INVALID_ARGUMENT : DSAT_INTERNAL, status.message());
}

template <class T>
T or_throw(Result<T> result) {
  or_throw(result.status());
  return std::move(result).value();
}

}  // namespace dsat::host

#endif  // DSAT_HOST_BASE_GUARDED_H_
