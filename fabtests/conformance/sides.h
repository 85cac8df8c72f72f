// Tests between processes. Each side of a test is a process of its own, forked before libfabric is
// touched, placed on its node (a network namespace, if the setting names one), given its side's
// environment, and killed if the test does not end in time. The sides talk past libfabric over
// socket pairs: to exchange names and to meet. What a side finds wrong fails the test.
//
// The setting comes from the environment, so that one binary runs everywhere:
//   CONFORMANCE_PROVIDER       the provider under test (default: cluster)
//   CONFORMANCE_NODE           numeric source address for every endpoint (default: provider's choice)
//   CONFORMANCE_FAMILY         6: addresses of IPv6 (default: 4)
//   CONFORMANCE_NETNS_A, _B    network namespaces (name or path) of even and of odd sides
//   CONFORMANCE_NETNS_C, _D    if these are there, too: of every fourth side, from the first to the fourth
//   CONFORMANCE_ENV_A, _B      "NAME=value NAME=value": environment of even and of odd sides
//   CONFORMANCE_PROGRESS       auto or manual (default: the provider's choice)
//   CONFORMANCE_ROUNDS         how often the tests of waiting go back and forth
//   CONFORMANCE_SECONDS        the longest a test may take (default: 120)
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace conformance {

/// Every waiting loop polls one of these. Time in which the loop did not run, because the machine was busy, does not
/// count.
class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds length) : left_(length) {}
  bool passed() const;

 private:
  using Clock = std::chrono::steady_clock;
  mutable Clock::duration left_;
  mutable Clock::time_point last_check_ = Clock::now();
};

/// The longest that the setting lets a test take: an emulated processor needs more.
std::chrono::seconds longest_test();

/// What a loop does that has found nothing: yields and, because some kernels let threads that only yield keep
/// the processor, sleeps now and then.
void yield_processor();

using Blob = std::vector<unsigned char>;

/// What one side knows of the test: which one it is, and the lines to the others.
class Side {
 public:
  Side(int index, std::vector<int> lines) : index_(index), sockets_(std::move(lines)) {}

  int index() const { return index_; }
  bool first() const { return index_ == 0; }
  int count() const { return static_cast<int>(sockets_.size()); }

  void send_blob(int other, const Blob& blob);
  /// Waits for a blob of `other`; calls `meanwhile` (progress) repeatedly. Fails the test and
  /// leaves the process if the other side is gone.
  Blob receive_blob(int other, const std::function<void()>& meanwhile = {});
  /// Both at once, with every other side; the result has an entry per side, mine included.
  std::vector<Blob> exchange(const Blob& mine, const std::function<void()>& meanwhile = {});
  /// Returns when every side has come here.
  void meet(const std::function<void()>& meanwhile = {}) { exchange({1}, meanwhile); }

 private:
  int index_;
  std::vector<int> sockets_;  ///< by side; my own is -1
};

using Body = std::function<void(Side&)>;

/// Runs `body` once per side, each in a process of its own, and waits for all of them.
void run_sides(int count, const Body& body);

std::string provider_under_test();
/// True if the sides are on different nodes (network namespaces).
bool between_nodes();
/// True if the sides can reach each other's memory: they are on one node, and shared memory is not switched off.
bool memory_in_reach();

/// The value of an environment variable, or the fallback.
std::string setting(const char* name, const std::string& fallback);

}  // namespace conformance

/// A test whose body runs on `sides` processes at once: `side.index()` is the number of the process.
#define SIDES_TEST(suite, name, sides)                                        \
  static void suite##_##name##_body(conformance::Side& side);                 \
  TEST(suite, name) { conformance::run_sides(sides, suite##_##name##_body); } \
  static void suite##_##name##_body([[maybe_unused]] conformance::Side& side)

#define SINGLE_TEST(suite, name) SIDES_TEST(suite, name, 1)
#define PAIR_TEST(suite, name) SIDES_TEST(suite, name, 2)
