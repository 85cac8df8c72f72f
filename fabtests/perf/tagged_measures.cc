// Tagged messages: ping-pong, windows of messages, both directions, many pairs, overlap.
#include <rdma/fi_tagged.h>

#include <memory>

#include "measures.h"

namespace perf {
namespace {

constexpr std::uint64_t kDataTag = 1, kAnswerTag = 2;
constexpr unsigned kPairWindow = 16;

/// What a side does with messages of one size.
class Messages {
 public:
  Messages(Endpoints& side, const Item& item, bool cold)
      : side_(side),
        bytes_(item.bytes),
        window_(item.window),
        at_once_(item.bytes <= side.info().tx_attr->inject_size),
        out_(side.out(), item.bytes, cold),
        in_(side.in(), item.bytes, cold) {}

  void send(unsigned pair, std::uint64_t serial) {
    side_.post([&] {
      return fi_tsend(side_.ep(pair), out_.at(serial), bytes_, side_.out().descriptor(), side_.peer(pair),
                      kDataTag, side_.context());
    });
  }
  void receive(unsigned pair, std::uint64_t serial) {
    side_.post([&] {
      return fi_trecv(side_.ep(pair), in_.at(serial), bytes_, side_.in().descriptor(), FI_ADDR_UNSPEC,
                      kDataTag, 0, side_.context());
    });
  }
  void answer() {
    side_.post([&] { return fi_tinject(side_.ep(0), side_.out().data(), 1, side_.peer(0), kAnswerTag); });
  }
  void await_answer() {
    side_.post([&] {
      return fi_trecv(side_.ep(0), side_.in().data(), 1, side_.in().descriptor(), FI_ADDR_UNSPEC, kAnswerTag,
                      0, side_.context());
    });
    side_.await_received(1);
  }

  /// A message that is small enough goes the shortest way there is.
  void ping(std::uint64_t serial) {
    if (at_once_) {
      side_.post([&] { return fi_tinject(side_.ep(0), out_.at(serial), bytes_, side_.peer(0), kDataTag); });
    } else {
      send(0, serial);
      side_.await_sent(1);
    }
  }
  void take(std::uint64_t serial) {
    receive(0, serial);
    side_.await_received(1);
  }

  void send_window(unsigned pairs, unsigned window, std::uint64_t serial) {
    for (unsigned i = 0; i < window; ++i) {
      for (unsigned pair = 0; pair < pairs; ++pair) send(pair, serial * window + i);
    }
  }
  void receive_window(unsigned pairs, unsigned window, std::uint64_t serial) {
    for (unsigned i = 0; i < window; ++i) {
      for (unsigned pair = 0; pair < pairs; ++pair) receive(pair, serial * window + i);
    }
  }
  Endpoints& side() { return side_; }
  unsigned window() const { return window_; }

 private:
  Endpoints& side_;
  std::size_t bytes_;
  unsigned window_;
  bool at_once_;
  Places out_, in_;
};

using Shared = std::shared_ptr<Messages>;

Benchmark ping_pong(const Shared& messages, double pause = 0) {
  Benchmark work;
  work.figure = Figure::one_way_us;
  work.messages = 2;
  work.pauses = 2 * pause;
  work.lead = [messages, pause](std::uint64_t serial) {
    if (pause > 0) compute_for(pause);
    messages->ping(serial);
    messages->take(serial);
  };
  work.follow = [messages, pause](std::uint64_t serial) {
    messages->take(serial);
    if (pause > 0) compute_for(pause);
    messages->ping(serial);
  };
  return work;
}

Benchmark windows(const Shared& messages, unsigned pairs, unsigned window, Figure figure) {
  Benchmark work;
  work.figure = figure;
  work.messages = pairs * window;
  work.lead = [=](std::uint64_t serial) {
    messages->send_window(pairs, window, serial);
    messages->side().await_sent(pairs * window);
    messages->await_answer();
  };
  work.follow = [=](std::uint64_t serial) {
    messages->receive_window(pairs, window, serial);
    messages->side().await_received(pairs * window);
    messages->answer();
  };
  return work;
}

Benchmark both_ways(const Shared& messages) {
  Benchmark work;
  work.figure = Figure::bytes_per_second;
  work.messages = 2 * messages->window();
  work.lead = work.follow = [messages](std::uint64_t serial) {
    messages->receive_window(1, messages->window(), serial);
    messages->send_window(1, messages->window(), serial);
    messages->side().await_sent(messages->window());
    messages->side().await_received(messages->window());
  };
  return work;
}

Benchmark overlap(const Shared& messages) {
  Benchmark work = windows(messages, 1, 1, Figure::round_us);
  const auto computing = std::make_shared<double>(0);
  work.compute = [computing](double seconds) { *computing = seconds; };
  work.lead = [messages, computing](std::uint64_t serial) {
    messages->send(0, serial);
    if (*computing > 0) compute_for(*computing);
    messages->side().await_sent(1);
    messages->await_answer();
  };
  return work;
}

}  // namespace

Benchmark tagged_work(Endpoints& side, const Item& item, bool cold) {
  const auto messages = std::make_shared<Messages>(side, item, cold);
  Benchmark work;
  if (item.measure == "latency") work = ping_pong(messages);
  if (item.measure == "wake") work = ping_pong(messages, kFallAsleepSeconds);
  if (item.measure == "bandwidth") work = windows(messages, 1, item.window, Figure::bytes_per_second);
  if (item.measure == "rate") work = windows(messages, 1, item.window, Figure::messages_per_second);
  if (item.measure == "bidirectional") work = both_ways(messages);
  if (item.measure == "pairs")
    work = windows(messages, item.window, kPairWindow, Figure::messages_per_second);
  if (item.measure == "overlap") work = overlap(messages);
  work.bytes = work.messages * static_cast<double>(item.bytes);
  return work;
}

}  // namespace perf
