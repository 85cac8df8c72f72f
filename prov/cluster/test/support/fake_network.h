// A network in memory between fake links: it loses, duplicates, delays, reorders and damages frames as
// its conditions say, by the dice of its seed. Nothing moves by itself: next_arrival() says when
// something will, and links hand out what has arrived by the clock's now.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "link/link.h"
#include "support/failing_memory.h"
#include "support/fake_environment.h"
#include "wire/frame.h"

namespace cluster::test {

struct Conditions {
  double loss = 0;
  double duplicate = 0;
  double corrupt = 0;
  Duration delay = 10us;
  Duration jitter = 0ns;                ///< each copy takes up to so much longer: frames overtake each other
  bool blackout = false;                ///< everything is lost
  bool macs = false;                    ///< frames arrive with the hardware address of their sender
  std::size_t burst = link::kBurstMax;  ///< frames a link takes per call
  bool joined = false;                  ///< arrivals of one sender and length are handed out back to back
  bool segments = false;                ///< ...and how long each is, is said
};

class FakeNetwork {
 public:
  FakeNetwork(FakeClock& clock, std::uint64_t seed) : clock_(clock), random_(seed) {}

  struct Packet {
    SocketAddress from;
    std::vector<std::byte> bytes;
    bool raw = false;  ///< sent to a hardware address
    bool ethertype = false;
    Time arrived{};
    std::size_t segment = 0;  ///< of what a link has joined
  };

  Conditions conditions;
  std::size_t looks = 0;      ///< how often links were asked what had arrived
  std::uint64_t carried = 0;  ///< frames handed in
  std::uint64_t lost = 0;
  std::uint64_t lost_data = 0;  ///< of those: not mere acknowledgements
  std::uint64_t damaged = 0;
  /// If set, decides about each frame instead of the dice: true drops it.
  std::function<bool(const Packet&, const SocketAddress& to)> drop;
  /// If set: each look for path errors finds that nothing is at this address.
  std::optional<SocketAddress> absent;
  std::vector<std::byte> last_to_absent;  ///< frame, which that quotes
  link::Thinning thinning;                ///< as a link was asked for last
  std::vector<int> descriptors;           ///< of each link; no thread sleeps on a link without any
  /// If set: true if the link of this address takes nothing now.
  std::function<bool(const SocketAddress& from)> link_full;

  void carry(const SocketAddress& from, const link::OutFrame& frame) {
    const SpareMemory network;
    ++carried;
    Packet packet{from, {}, frame.path->mac_known, frame.path->ethertype};
    for (std::size_t i = 0; i < frame.count; ++i) {
      packet.bytes.insert(packet.bytes.end(), frame.pieces[i].begin(), frame.pieces[i].end());
    }
    const SocketAddress& to = frame.path->to;
    if (absent == to) last_to_absent = packet.bytes;
    const bool dropped = drop && drop(packet, to);
    if (dropped || conditions.blackout || random_.one_in(conditions.loss)) {
      ++lost;
      if ((packet.bytes[3] & std::byte{wire::frame_flag::kSequenced}) != std::byte{0}) ++lost_data;
      return;
    }
    if (random_.one_in(conditions.duplicate)) deliver(to, packet);
    deliver(to, std::move(packet));
  }
  Time next_arrival() const { return flying_.empty() ? kNever : flying_.begin()->first.first; }
  /// The next frame for `to` that has arrived by now.
  bool arrived(const SocketAddress& to, Packet& out) {
    for (auto i = flying_.begin(); i != flying_.end() && i->first.first <= clock_.now(); ++i) {
      if (!(i->second.first == to)) continue;
      out = std::move(i->second.second);
      out.arrived = i->first.first;
      flying_.erase(i);
      return true;
    }
    return false;
  }
  FakeClock& clock() { return clock_; }

 private:
  void deliver(const SocketAddress& to, Packet packet) {
    if (random_.one_in(conditions.corrupt)) {
      const std::uint64_t bit = random_.below(packet.bytes.size() * 8);
      packet.bytes[bit / 8] ^= std::byte{1} << (bit % 8);
      ++damaged;
    }
    Time when = clock_.now() + conditions.delay;
    if (conditions.jitter > 0ns) {
      when += Duration(random_.below(static_cast<std::uint64_t>(conditions.jitter.count())));
    }
    flying_.emplace(std::pair{when, serial_++}, std::pair{to, std::move(packet)});
  }

  FakeClock& clock_;
  FakeRandom random_;
  std::map<std::pair<Time, std::uint64_t>, std::pair<SocketAddress, Packet>> flying_;
  std::uint64_t serial_ = 0;
};

class FakeLink final : public link::Link {
 public:
  FakeLink(FakeNetwork& network, const SocketAddress& name, std::size_t frame_max = 1472)
      : network_(network), name_(name), frame_max_(frame_max) {}

  const char* name() const override { return "fake"; }
  std::size_t frame_max() const override { return frame_max_; }
  std::vector<int> descriptors() const override { return network_.descriptors; }
  std::size_t send_burst(std::span<const link::OutFrame> frames) override {
    const bool full = network_.link_full && network_.link_full(name_);
    const std::size_t taken = full ? 0 : std::min(frames.size(), network_.conditions.burst);
    for (const link::OutFrame& frame : frames.first(taken)) network_.carry(name_, frame);
    return taken;
  }
  std::size_t receive_burst(std::span<link::InFrame> frames) override {
    const SpareMemory network;
    ++network_.looks;
    if (std::exchange(has_moved_, false) && moved_) moved_(0, name_);
    inbox_.clear();
    FakeNetwork::Packet packet;
    std::size_t frame_size = 0;
    while (inbox_.size() < frames.size() && network_.arrived(name_, packet)) {
      const bool joins = network_.conditions.joined && !inbox_.empty() && inbox_.back().from == packet.from &&
                         frame_size == packet.bytes.size() && inbox_.back().ethertype == packet.ethertype;
      frame_size = packet.bytes.size();
      if (joins) {
        std::vector<std::byte>& last = inbox_.back().bytes;
        last.insert(last.end(), packet.bytes.begin(), packet.bytes.end());
        if (network_.conditions.segments) inbox_.back().segment = frame_size;
      } else {
        inbox_.push_back(std::move(packet));
      }
    }
    for (std::size_t i = 0; i < inbox_.size(); ++i) {
      frames[i].bytes = inbox_[i].bytes;
      frames[i].from = {inbox_[i].from, {}, network_.conditions.macs, 0, inbox_[i].ethertype};
      frames[i].arrived = inbox_[i].arrived;
      frames[i].segment = inbox_[i].segment;
    }
    return inbox_.size();
  }
  void thin(const link::Thinning& thinning) override { network_.thinning = thinning; }
  void on_move(const MoveHandler& handler) override { moved_ = handler; }
  /// The link has this address from its next look on.
  void readdress(const SocketAddress& name) {
    name_ = name;
    has_moved_ = true;
  }
  std::size_t read_path_errors(std::span<link::PathError> errors) override {
    if (!network_.absent || errors.empty()) return 0;
    errors[0] = {*network_.absent, Status::refused};
    errors[0].set_quote(network_.last_to_absent);
    return 1;
  }

 private:
  FakeNetwork& network_;
  SocketAddress name_;
  std::size_t frame_max_;
  std::vector<FakeNetwork::Packet> inbox_;
  MoveHandler moved_;
  bool has_moved_ = false;
};

}  // namespace cluster::test
