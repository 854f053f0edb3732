// Pools the repeats with the prior, and sums the finite series of Student's t distribution for whole degrees. Between
// whole degrees the distribution is interpolated.
#include "finals/noise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace dsat::host {
namespace {

constexpr double kPi = 3.14159265358979323846;

// Repeats that are noisier than the prior refute it. The prior then counts less, by the ratio of the variances: two
// degrees of 2 % would otherwise halve a measured 30 %.
double prior_degrees(const Repeats& repeats) {
  constexpr double kPriorVariance = kPriorDeviation * kPriorDeviation;
  const double seen = repeats.degrees < 1 ? 0 : repeats.squares / repeats.degrees;
  return seen > kPriorVariance ? kPriorDegrees * kPriorVariance / seen : kPriorDegrees;
}

}  // namespace

void Repeats::add(const std::vector<double>& values) {
  if (values.size() < 2) return;
  const double mean = mean_of(values);
  for (const double value : values) squares += (value - mean) * (value - mean);
  degrees += static_cast<double>(values.size() - 1);
}

Json to_json(const Repeats& repeats) { return {{"squares", repeats.squares}, {"degrees", repeats.degrees}}; }

Repeats repeats_from_json(const Json& json) {
  return {json.at("squares").get<double>(), json.at("degrees").get<double>()};
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Difference::half_width() const { return scale * student_quantile(0.975, degrees); }

double Difference::chance_above(double by) const { return 1 - student_cdf((by - mean) / scale, degrees); }

// Infinite where the distribution has no mean.
double Difference::expected_gain() const {
  if (degrees <= 1) return std::numeric_limits<double>::infinity();
  const double t = mean / scale;
  const double density = std::exp(std::lgamma((degrees + 1) / 2) - std::lgamma(degrees / 2)) /
                         std::sqrt(degrees * kPi) * std::pow(1 + t * t / degrees, -(degrees + 1) / 2);
  return scale * (density * (degrees + t * t) / (degrees - 1) + t * student_cdf(t, degrees));
}

double pooled_variance(const Repeats& repeats) {
  const double prior = prior_degrees(repeats);
  return (prior * kPriorDeviation * kPriorDeviation + repeats.squares) / (prior + repeats.degrees);
}

Difference difference(const std::vector<double>& a, const std::vector<double>& b, Repeats others,
                      const std::vector<double>& a_before) {
  std::vector<double> all_of_a = a_before;
  all_of_a.insert(all_of_a.end(), a.begin(), a.end());
  others.add(all_of_a);
  others.add(b);
  const double degrees = prior_degrees(others) + others.degrees;
  const double variance = pooled_variance(others);
  const double counts = 1 / static_cast<double>(a.size()) + 1 / static_cast<double>(b.size());
  return {mean_of(a) - mean_of(b), std::sqrt(variance * counts), degrees};
}

double gain_of_another(const std::vector<double>& a, const std::vector<double>& b, const Repeats& others) {
  const Difference now = difference(a, b, others);
  // The variance of a mean, in variances of one measurement, falls from 1 / n to 1 / (n + 1).
  const auto fall = [](double n) { return 1 / (n * (n + 1)); };
  const auto of_a = static_cast<double>(a.size()), of_b = static_cast<double>(b.size());
  const double change = now.scale * std::sqrt((fall(of_a) + fall(of_b)) / (1 / of_a + 1 / of_b));
  return Difference{-std::abs(now.mean), change, now.degrees}.expected_gain();
}

namespace {

double cdf_of_whole_degrees(double t, int whole) {
  const double angle = std::atan(t / std::sqrt(whole));
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const bool odd = whole % 2 == 1;
  // The first term, then each one from the one before it.
  double term = odd ? cosine : 1, sum = whole > 1 ? term : 0;
  for (int i = odd ? 3 : 2; i < whole; i += 2) {
    term *= cosine * cosine * (i - 1) / i;
    sum += term;
  }
  const double within = odd ? 2 / kPi * (angle + sine * sum) : sine * sum;
  return 0.5 + within / 2;
}

}  // namespace

double student_cdf(double t, double degrees) {
  const int whole = std::max(1, static_cast<int>(degrees));
  const double part = std::clamp(degrees - whole, 0.0, 1.0);
  if (part == 0) return cdf_of_whole_degrees(t, whole);
  return (1 - part) * cdf_of_whole_degrees(t, whole) + part * cdf_of_whole_degrees(t, whole + 1);
}

double student_quantile(double probability, double degrees) {
  double low = 0, high = 1;
  while (student_cdf(high, degrees) < probability) high *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (student_cdf(middle, degrees) < probability ? low : high) = middle;
  }
  return high;
}

}  // namespace dsat::host
