// One table of the types that both file formats have.
#include "weights/weight_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "dsat/error.h"

namespace dsat::trainer {
namespace {

constexpr std::array<WeightType, 10> kTypes{{{at::kFloat, "F32", "FloatStorage"},
                                             {at::kBFloat16, "BF16", "BFloat16Storage"},
                                             {at::kHalf, "F16", "HalfStorage"},
                                             {at::kDouble, "F64", "DoubleStorage"},
                                             {at::kLong, "I64", "LongStorage"},
                                             {at::kInt, "I32", "IntStorage"},
                                             {at::kShort, "I16", "ShortStorage"},
                                             {at::kChar, "I8", "CharStorage"},
                                             {at::kByte, "U8", "ByteStorage"},
                                             {at::kBool, "BOOL", "BoolStorage"}}};

template <typename Fits>
const WeightType* find(Fits fits) {
  const auto* const found = std::find_if(kTypes.begin(), kTypes.end(), fits);
  return found == kTypes.end() ? nullptr : found;
}

}  // namespace

int64_t WeightSpec::numel() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

const WeightType& weight_type(const std::string& tensor, at::ScalarType dtype) {
  if (const WeightType* type = find([&](const WeightType& one) { return one.dtype == dtype; })) return *type;
  throw Error(fmt::format("{} is of type {}, which files of weights do not have", tensor, c10::toString(dtype)));
}
std::string described_type(at::ScalarType dtype) {
  const WeightType* const type = find([&](const WeightType& one) { return one.dtype == dtype; });
  return type != nullptr ? type->safetensors : c10::toString(dtype);
}
const WeightType* type_of_safetensors(const std::string& name) {
  return find([&](const WeightType& one) { return name == one.safetensors; });
}
const WeightType* type_of_torch_storage(const std::string& name) {
  return find([&](const WeightType& one) { return name == one.torch_storage; });
}

}  // namespace dsat::trainer
