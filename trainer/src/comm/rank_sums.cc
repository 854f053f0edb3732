// Takes from each root's list of tensors what fits into its share, and adds what has come in tiles.
#include "comm/rank_sums.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/bfloat16.h"

namespace dsat::trainer {
namespace {

constexpr size_t kLine = 64;  // bytes: parts begin on whole cache lines

float widened(float value) { return value; }
double widened(double value) { return value; }
float widened(BFloat16 value) { return to_float(value); }
void store(float& to, float sum) { to = sum; }
void store(double& to, double sum) { to = sum; }
void store(BFloat16& to, float sum) { assign(to, sum); }

// A tile stays in the nearest cache while all ranks' parts are added to it.
template <typename T>
void add(const std::vector<const void*>& sources, T* to, int64_t size) {
  constexpr int64_t kTile = 1024;  // elements
  decltype(widened(T())) sum[kTile];
  for (int64_t at = 0; at < size; at += kTile) {
    const int64_t length = std::min(kTile, size - at);
    for (size_t rank = 0; rank < sources.size(); ++rank) {
      const T* const from = static_cast<const T*>(sources[rank]) + at;
      for (int64_t i = 0; i < length; ++i) sum[i] = rank == 0 ? widened(from[i]) : sum[i] + widened(from[i]);
    }
    for (int64_t i = 0; i < length; ++i) store(to[at + i], sum[i]);
  }
}

}  // namespace

RankSums::RankSums(const std::vector<Summand>& summands, size_t round_bytes, size_t root_bytes)
    : round_bytes_(round_bytes), root_bytes_(root_bytes) {
  for (const Summand& summand : summands) {
    auto found =
        std::find_if(roots_.begin(), roots_.end(), [&](const OfRoot& one) { return one.root == summand.root; });
    if (found == roots_.end()) found = roots_.insert(roots_.end(), OfRoot{summand.root, {}});
    if (summand.tensor.numel() > 0) found->tensors.push_back(summand.tensor);
  }
}

std::vector<SumPart> RankSums::next() {
  roots_.erase(std::remove_if(roots_.begin(), roots_.end(), [](const OfRoot& one) { return one.is_done(); }),
               roots_.end());
  std::vector<SumPart> parts;
  if (roots_.empty()) return parts;
  const size_t share = std::min(round_bytes_ / roots_.size(), root_bytes_) / kLine * kLine;
  for (size_t i = 0; i < roots_.size(); ++i) take(roots_[i], i * share, (i + 1) * share, parts);
  return parts;
}

// As much as fits between the bytes `offset` and `end`.
void RankSums::take(OfRoot& sums, size_t offset, size_t end, std::vector<SumPart>& parts) {
  while (!sums.is_done()) {
    const at::Tensor& tensor = sums.tensors[sums.tensor];
    const auto fits = static_cast<int64_t>((end - offset) / tensor.element_size());
    const int64_t length = std::min(tensor.numel() - sums.at, fits);
    if (length == 0) return;
    parts.push_back({tensor.narrow(0, sums.at, length), sums.root, offset});
    sums.at += length;
    if (sums.at == tensor.numel()) {
      ++sums.tensor;
      sums.at = 0;
    }
    offset += (static_cast<size_t>(length) * tensor.element_size() + kLine - 1) / kLine * kLine;
    if (offset >= end) return;
  }
}

void add_in_order(const std::vector<const void*>& sources, const at::Tensor& values) {
  switch (values.scalar_type()) {
    case at::kDouble:
      return add(sources, values.data_ptr<double>(), values.numel());
    case at::kBFloat16:
      return add(sources, static_cast<BFloat16*>(values.data_ptr()), values.numel());
    default:
      return add(sources, values.data_ptr<float>(), values.numel());
  }
}

}  // namespace dsat::trainer
