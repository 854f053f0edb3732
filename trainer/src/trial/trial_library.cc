#include "trial/trial_library.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <filesystem>
#include <string_view>

namespace dsat::trainer {
namespace {

static_assert(std::string_view(DSAT_TRAINER_VERSION) == DSAT_PROJECT_VERSION,
              "trial.h names another version than CMake");

std::string describe(const TrialVersions& versions) {
  return std::string("dsat ") + versions.dsat + " and LibTorch " + versions.libtorch;
}

void* load(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    throw Error("--trial " + path + ": no such file; name a trial's library");
  // Absolute: a bare name would be looked for where the system's libraries are.
  void* const library = ::dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  throw Error("--trial " + path + ": cannot be loaded: " + ::dlerror() + "; build it with this dsat's headers");
}

}  // namespace

TrialLibrary::TrialLibrary(const std::string& path) {
  void* const library = load(path);
  const auto entry = reinterpret_cast<const TrialEntry* (*)()>(::dlsym(library, kTrialEntry));
  if (entry == nullptr)
    throw Error("--trial " + path + ": has no " + kTrialEntry + ": put DSAT_TRIAL(YourTrial) into one of its sources");
  entry_ = entry();
  const std::string theirs = describe(entry_->versions), ours = describe(TrialVersions());
  if (theirs != ours) {
    throw Error("--trial " + path + ": was built with " + theirs + ", this is " + ours + ": build it again");
  }
}

std::unique_ptr<Trial> TrialLibrary::make(TrialContext& context) const {
  const std::string where = "the constructor of " + name() + ": ";
  try {
    return entry_->make(context);
  } catch (const PeerLost&) {
    throw;  // a consequence of another rank's failure
  } catch (const TuningDone&) {
    throw;
  } catch (const Error& error) {
    throw Error(error.code(), where + error.what());
  } catch (const c10::Error& error) {
    throw Error(DSAT_INTERNAL, where + error.what_without_backtrace());
  } catch (const std::exception& error) {
    throw Error(DSAT_INTERNAL, where + error.what());
  } catch (...) {
    throw Error(DSAT_INTERNAL, where + "threw something that is no std::exception");
  }
}

}  // namespace dsat::trainer
