#include "sim/workload.h"

#include <algorithm>
#include <array>

#include "protocol/ops.h"
#include "wire/control.h"

namespace cluster::sim {
namespace {

constexpr std::size_t kPullBytes = 256 * 1024;
/// Headers of a frame and of the largest segment. The greatest payload of a frame is smaller than the frame
/// by so much.
constexpr std::size_t kHeaders = 32 + 32;

constexpr std::array<std::size_t, 12> kTiny{0, 1, 2, 7, 8, 9, 16, 63, 64, 65, 200, 500};

std::size_t near(std::size_t middle, std::size_t reach, SeededRandom& random) {
  const std::size_t low = middle > reach ? middle - reach : 0;
  return low + random.below(middle + reach - low + 1);
}

using Name = std::string_view;
constexpr std::array<Name, 14> kNames{"ping-pong",   "all-to-all",    "incast",    "wildcard", "sizes",
                                      "cancel-peek", "large",         "remote",    "backlog",  "mixed",
                                      "atomics",     "multi-receive", "datagrams", "histories"};

void make_ping_pong(WorkloadPlan& plan, SeededRandom& random) {
  plan.pattern = Pattern::ping_pong;
  plan.messages = static_cast<std::uint32_t>(random.between(50, 400));
  plan.in_flight = static_cast<std::uint32_t>(random.between(1, 4));
}

void make_incast(WorkloadPlan& plan, SeededRandom& random) {
  plan.pattern = Pattern::incast;
  plan.in_flight = static_cast<std::uint32_t>(random.between(2, 32));
  plan.sizes = {10, 10, 20, 20, 10, 1, 0};
}

void make_wildcard(WorkloadPlan& plan, SeededRandom& random) {
  plan.wildcard = 800'000;
  plan.exact = 150'000;
  plan.classed = 300'000;
  plan.receive_depth = static_cast<std::uint32_t>(random.between(1, 40));
}

void make_cancel_peek(WorkloadPlan& plan, SeededRandom& random) {
  plan.cancel = 100'000;
  plan.peek = 200'000;
  plan.tagged = 600'000;
  plan.with_data = kMillion;  // a peek shows no bytes, so untagged messages carry their number as data
  plan.late = random.between(0us, 500us);
}

void make_large(WorkloadPlan& plan, SeededRandom& random) {
  plan.messages = static_cast<std::uint32_t>(random.between(4, 20));
  plan.in_flight = static_cast<std::uint32_t>(random.between(1, 8));
  plan.receive_depth = static_cast<std::uint32_t>(random.between(1, 8));
  plan.sizes = {5, 0, 10, 10, 20, 8, 0};
}

void make_remote(WorkloadPlan& plan, SeededRandom& random) {
  plan.pattern = random.pick(std::array{Pattern::scattered, Pattern::all_to_all, Pattern::incast});
  plan.remote = random.chance(300'000) ? kMillion : static_cast<std::uint32_t>(random.below(kMillion));
  plan.reads = static_cast<std::uint32_t>(random.below(kMillion));
  plan.closing = random.chance(300'000) ? 1'000 : 0;
  if (random.chance(300'000)) plan.sizes = {10, 5, 10, 10, 20, 3, 0};
}

/// Receives come late and one by one, so messages pile up until neither credit nor space in the store is
/// left.
void make_backlog(WorkloadPlan& plan, SeededRandom& random) {
  plan.pattern = Pattern::incast;
  plan.messages = static_cast<std::uint32_t>(random.between(50, 300));
  plan.in_flight = static_cast<std::uint32_t>(random.between(8, 64));
  plan.receive_depth = static_cast<std::uint32_t>(random.between(1, 4));
  plan.late = random.between(20us, 500us);
  plan.wildcard = kMillion;
  plan.exact = plan.classed = 0;
  plan.unexpected_max = random.pick(std::array<std::size_t, 4>{8, 16, 64, 256});
  plan.one_frame = random.chance(500'000);
  plan.sizes = plan.one_frame ? SizeMix{10, 0, 0, 0, 0, 0, 0} : SizeMix{40, 0, 10, 50, 0, 0, 0};
}

/// Several hosts operate on a few words of each other. Messages and remote reads and writes go on beside
/// that.
void make_atomics(WorkloadPlan& plan, SeededRandom& random) {
  plan.pattern = random.pick(std::array{Pattern::scattered, Pattern::all_to_all, Pattern::incast});
  plan.atomics.share =
      random.chance(500'000) ? kMillion : static_cast<std::uint32_t>(random.between(kMillion / 5, kMillion));
  plan.remote = random.chance(300'000) ? static_cast<std::uint32_t>(random.below(kMillion / 2)) : 0;
  plan.to_itself = random.chance(200'000) ? 200'000 : 10'000;
}

/// Short histories of many words. The operations are of every kind, and hosts also operate on their own
/// words.
void make_histories(WorkloadPlan& plan, SeededRandom& random) {
  make_atomics(plan, random);
  plan.atomics.share = random.chance(800'000) ? kMillion : kMillion * 9 / 10;
  plan.remote = 0;
  plan.atomics.mixed_words = kMillion;
  plan.messages = static_cast<std::uint32_t>(random.between(200, 1500));
  plan.in_flight = static_cast<std::uint32_t>(random.between(1, 12));
  plan.to_itself = static_cast<std::uint32_t>(random.below(400'000));
  plan.forbidden = 5'000;
  plan.sizes = {10, 0, 5, 1, 0, 0, 0};
}

void make_multi_receive(WorkloadPlan& plan, SeededRandom& random) {
  plan.pattern = random.pick(std::array{Pattern::scattered, Pattern::all_to_all, Pattern::incast});
  plan.multi_receives = random.between(1, 4);
  plan.tagged = random.chance(500'000) ? 0 : 200'000;
  plan.receive_depth = random.chance(700'000) ? 0 : static_cast<std::uint32_t>(random.between(1, 4));
  plan.cancel = random.chance(300'000) ? 30'000 : 0;
  plan.sizes = random.chance(500'000) ? SizeMix{40, 10, 40, 5, 1, 0, 0} : SizeMix{10, 5, 10, 30, 5, 0, 0};
}

void make_datagrams(WorkloadPlan& plan, SeededRandom& random) {
  plan.pattern = random.pick(std::array{Pattern::scattered, Pattern::all_to_all, Pattern::incast});
  plan.datagrams = true;
  plan.tagged = plan.exact = plan.classed = 0;
  plan.multi_receives = random.chance(200'000) ? 1 : 0;
  plan.cancel = random.chance(200'000) ? 30'000 : 0;
  plan.sizes = {40, 10, 20, 0, 0, 0, 0};
}

void make_mixed(WorkloadPlan& plan, SeededRandom& random) {
  plan.pattern =
      random.pick(std::array{Pattern::scattered, Pattern::all_to_all, Pattern::ping_pong, Pattern::incast});
  plan.cancel = random.chance(300'000) ? 50'000 : 0;
  if (random.chance(300'000)) make_cancel_peek(plan, random);
  plan.tagged = static_cast<std::uint32_t>(random.below(kMillion + 1));
  plan.injected = static_cast<std::uint32_t>(random.below(kMillion));
  plan.buffer_free = static_cast<std::uint32_t>(random.below(kMillion / 2));
  plan.delivered = static_cast<std::uint32_t>(random.below(kMillion));
  plan.wildcard = static_cast<std::uint32_t>(random.below(kMillion));
  plan.exact = static_cast<std::uint32_t>(random.below(kMillion / 3));
  if (random.chance(400'000)) plan.remote = static_cast<std::uint32_t>(random.below(kMillion / 2));
  if (random.chance(300'000)) plan.atomics.share = static_cast<std::uint32_t>(random.below(kMillion / 2));
  if (random.chance(200'000)) plan.multi_receives = 1;
}

}  // namespace

std::size_t draw_size(const SizeMix& mix, const Thresholds& thresholds, SeededRandom& random) {
  if (mix.fixed != 0) return mix.fixed;
  std::uint64_t at = random.below(mix.tiny + mix.inject + mix.frame + mix.eager + mix.pull + mix.huge);
  const auto falls_in = [&at](std::uint32_t weight) {
    if (at < weight) return true;
    at -= weight;
    return false;
  };
  if (falls_in(mix.tiny)) return random.pick(kTiny);
  if (falls_in(mix.inject)) return near(protocol::kInjectMax, 1, random);
  if (falls_in(mix.frame))
    return near(random.between(1, 3) * (thresholds.frame_max - kHeaders), kHeaders, random);
  if (falls_in(mix.eager)) return near(thresholds.eager_max, 2, random);
  if (falls_in(mix.pull)) return near(random.between(1, 2) * kPullBytes, 1, random);
  return near(random.between(1, 4) * 1024 * 1024, 3, random);
}

std::size_t largest_size(const SizeMix& mix, const Thresholds& thresholds) {
  if (mix.fixed != 0) return mix.fixed;
  std::size_t largest = std::max<std::size_t>(3 * thresholds.frame_max, thresholds.eager_max + 2);
  if (mix.pull != 0) largest = std::max(largest, 2 * kPullBytes + 1);
  if (mix.huge != 0) largest = std::max<std::size_t>(largest, 4 * 1024 * 1024 + 3);
  return std::max(largest, protocol::kInjectMax + 1);
}

std::size_t datagram_max(const Thresholds& thresholds) {
  return thresholds.frame_max - wire::kDatagramHeaderMax;
}

std::vector<std::string_view> workload_names() { return {kNames.begin(), kNames.end()}; }

WorkloadPlan draw_workload(std::string_view name, SeededRandom& random) {
  const Name drawn = random.pick(kNames);
  if (name.empty() || name == "any") name = drawn;
  WorkloadPlan plan;
  plan.name = name;
  plan.messages = static_cast<std::uint32_t>(random.between(20, 200));
  plan.in_flight = static_cast<std::uint32_t>(random.between(1, 32));
  plan.receive_depth = static_cast<std::uint32_t>(random.between(1, 32));
  if (random.chance(500'000)) plan.think = random.between(0us, 200us);
  if (random.chance(300'000)) plan.late = random.between(0us, 1ms);
  if (name == "ping-pong") {
    make_ping_pong(plan, random);
  } else if (name == "all-to-all") {
    plan.pattern = Pattern::all_to_all;
  } else if (name == "incast") {
    make_incast(plan, random);
  } else if (name == "wildcard") {
    make_wildcard(plan, random);
  } else if (name == "cancel-peek") {
    make_cancel_peek(plan, random);
  } else if (name == "large") {
    make_large(plan, random);
  } else if (name == "remote") {
    make_remote(plan, random);
  } else if (name == "backlog") {
    make_backlog(plan, random);
  } else if (name == "atomics") {
    make_atomics(plan, random);
  } else if (name == "histories") {
    make_histories(plan, random);
  } else if (name == "multi-receive") {
    make_multi_receive(plan, random);
  } else if (name == "datagrams") {
    make_datagrams(plan, random);
  } else if (name == "mixed") {
    make_mixed(plan, random);
  } else if (name != "sizes") {
    plan.name.clear();
  }
  return plan;
}

}  // namespace cluster::sim
