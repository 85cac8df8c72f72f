// Remote memory: writes, reads and atomic additions.
//
// In private memory each operation of a window has a place of its own, and a write is over when the target has
// seen it: the last byte of every place carries the number of the round.
//
// In a shared mapping all operations of a window have one place, and a write is over when its initiator knows
// it: so does ucx_perftest measure, with which they are compared. With a place each, 1 MB x 16 would be a copy
// out of memory on one side, and one inside the processor's cache on the other.
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <regex>
#include <string>

#include "measures.h"

namespace perf {
namespace {

constexpr std::uint64_t kAnswerTag = 3;

class Remote {
 public:
  Remote(Endpoints& side, const Item& item)
      : side_(side),
        bytes_(std::max<std::size_t>(item.bytes, 1)),
        window_(item.window),
        places_(places_of(item)) {}

  void write_all(std::uint64_t round) {
    for (unsigned i = 0; i < window_; ++i) {
      char* from = side_.out().data() + place(i);
      from[bytes_ - 1] = stamp(round);
      side_.post([&] {
        return fi_write(side_.ep(0), from, bytes_, side_.out().descriptor(), side_.peer(0),
                        side_.remote_in().address + place(i), side_.remote_in().key, side_.context());
      });
    }
    side_.await_sent(window_);
  }
  void see_all(std::uint64_t round) {
    for (unsigned i = 0; i < places_; ++i) {
      const std::atomic_ref<char> last(side_.in().data()[place(i) + bytes_ - 1]);
      while (last.load(std::memory_order_acquire) != stamp(round)) side_.progress();
    }
  }
  void read_all() {
    for (unsigned i = 0; i < window_; ++i) {
      side_.post([&] {
        return fi_read(side_.ep(0), side_.in().data() + place(i), bytes_, side_.in().descriptor(),
                       side_.peer(0), side_.remote_out().address + place(i), side_.remote_out().key,
                       side_.context());
      });
    }
    side_.await_sent(window_);
  }
  void add_all() {
    auto* one = reinterpret_cast<std::uint64_t*>(side_.out().data());
    auto* old = reinterpret_cast<std::uint64_t*>(side_.in().data());
    *one = 1;
    for (unsigned i = 0; i < window_; ++i) {
      side_.post([&] {
        return fi_fetch_atomic(side_.ep(0), one, 1, side_.out().descriptor(), old, side_.in().descriptor(),
                               side_.peer(0), side_.remote_in().address, side_.remote_in().key, FI_UINT64,
                               FI_SUM, side_.context());
      });
    }
    side_.await_sent(window_);
  }
  void answer() {
    side_.post([&] { return fi_tinject(side_.ep(0), side_.out().data(), 1, side_.peer(0), kAnswerTag); });
  }
  void await_answer() {
    side_.post([&] {
      return fi_trecv(side_.ep(0), &answer_, 1, nullptr, FI_ADDR_UNSPEC, kAnswerTag, 0, side_.context());
    });
    side_.await_received(1);
  }

 private:
  std::size_t place(unsigned i) const { return i % places_ * bytes_; }
  static char stamp(std::uint64_t round) { return static_cast<char>(round % 127 + 1); }

  Endpoints& side_;
  std::size_t bytes_;
  unsigned window_, places_;
  char answer_ = 0;
};

using Shared = std::shared_ptr<Remote>;

Benchmark puts(const Shared& remote, Figure figure) {
  Benchmark work;
  work.figure = figure;
  work.lead = [remote](std::uint64_t round) {
    remote->write_all(round);
    remote->await_answer();
  };
  work.follow = [remote](std::uint64_t round) {
    remote->see_all(round);
    remote->answer();
  };
  return work;
}

Benchmark put_ping_pong(const Shared& remote) {
  Benchmark work;
  work.figure = Figure::one_way_us;
  work.lead = [remote](std::uint64_t round) {
    remote->write_all(round);
    remote->see_all(round);
  };
  work.follow = [remote](std::uint64_t round) {
    remote->see_all(round);
    remote->write_all(round);
  };
  return work;
}

/// The target of these takes no part; it only keeps its provider going.
Benchmark one_sided(Figure figure, std::function<void()> act) {
  Benchmark work;
  work.figure = figure;
  work.lead = [act = std::move(act)](std::uint64_t) { act(); };
  return work;
}

}  // namespace

Benchmark remote_work(Endpoints& side, const Item& item) {
  const auto remote = std::make_shared<Remote>(side, item);
  const auto read = [remote] { remote->read_all(); };
  const auto write = [remote] { remote->write_all(0); };
  const auto add = [remote] { remote->add_all(); };
  const std::string measure = std::regex_replace(item.measure, std::regex("_shared"), "");
  Benchmark work;
  if (item.measure == "put") work = puts(remote, Figure::bytes_per_second);
  if (item.measure == "put_rate") work = puts(remote, Figure::messages_per_second);
  if (item.measure == "put_shared") work = one_sided(Figure::bytes_per_second, write);
  if (item.measure == "put_shared_rate") work = one_sided(Figure::messages_per_second, write);
  if (measure == "put_latency") work = put_ping_pong(remote);
  if (measure == "get") work = one_sided(Figure::bytes_per_second, read);
  if (measure == "get_latency") work = one_sided(Figure::round_us, read);
  if (measure == "fetch_add") work = one_sided(Figure::messages_per_second, add);
  if (measure == "fetch_add_latency") work = one_sided(Figure::round_us, add);
  work.messages = measure == "put_latency" ? 2 : item.window;
  work.bytes = work.messages * static_cast<double>(item.bytes);
  return work;
}

}  // namespace perf
