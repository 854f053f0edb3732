// Where exceptions end: the host library fails inside by throwing dsat::Error and outside by returning a Status.
//
// as_result stands once in every public function; nothing thrown below it leaves the library. DSAT_INVALID_ARGUMENT
// (the user's mistake) becomes Status::invalid, every other code and exception Status::internal. or_throw goes the
// other way. Threading: no state of its own.
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

// "cannot copy the model /a/b: Permission denied": what std::filesystem throws, without its own wording.
inline Error file_error(const std::filesystem::filesystem_error& error, const std::string& action) {
  const std::string where = error.path1().string();
  return internal_error("cannot " + action + (where.empty() ? "" : " " + where) + ": " + error.code().message());
}

// The failure that a caught exception means.
inline Status status_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return Status::internal("not enough memory");
  const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  if (file != nullptr) return Status::internal(file_error(*file, "use").what());
  const auto* own = dynamic_cast<const Error*>(&error);
  const bool invalid = own != nullptr && own->code() == DSAT_INVALID_ARGUMENT;
  return invalid ? Status::invalid(error.what()) : Status::internal(error.what());
}

// What the exception that is being handled says, whatever was thrown; for catch (...) alone.
inline Status status_of_caught() {
  try {
    throw;
  } catch (const std::exception& error) {
    return status_of(error);
  } catch (...) {
    return Status::internal("something was thrown that is no std::exception");
  }
}

// The value of `body` as a Result, or a Status where it gives none; what it throws as the failure.
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
