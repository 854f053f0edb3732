// The result of the host library's public functions, which report errors by value and never by exception.
#ifndef DSAT_HOST_STATUS_H_
#define DSAT_HOST_STATUS_H_

#include <string>
#include <utility>
#include <variant>

namespace dsat::host {

// Success, or an error in one line: what is wrong, where, what to do.
class [[nodiscard]] Status {
 public:
  enum class Code {
    ok,
    invalid,   // wrong usage or configuration: nothing was run (exit status 2)
    internal,  // the host, a plugin or the machine failed (exit status 4)
  };
  Status() = default;
  static Status invalid(std::string message) { return {Code::invalid, std::move(message)}; }
  static Status internal(std::string message) { return {Code::internal, std::move(message)}; }

  bool ok() const { return code_ == Code::ok; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  Code code_ = Code::ok;
  std::string message_;
};

// A value, or the Status that explains why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : data_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : data_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return std::holds_alternative<T>(data_); }
  Status status() const { return ok() ? Status() : std::get<Status>(data_); }
  T& value() & { return std::get<T>(data_); }
  const T& value() const& { return std::get<T>(data_); }
  T&& value() && { return std::get<T>(std::move(data_)); }
  T* operator->() { return &std::get<T>(data_); }
  const T* operator->() const { return &std::get<T>(data_); }

 private:
  std::variant<T, Status> data_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STATUS_H_
