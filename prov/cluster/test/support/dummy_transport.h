// A transport for tests, as hardware would be one: segments travel through queues in memory, and are acknowledged late. That
// it needs this one file, and one entry among EngineParts::further_transports, is what it proves.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transport/arrival.h"
#include "transport/transport.h"
#include "transport/transport_context.h"

namespace cluster::test {

class DummyTransport;

struct ByName {
  bool operator()(const SocketAddress& a, const SocketAddress& b) const { return a.text() < b.text(); }
};

/// What connects the transports of a test, and outlives them.
struct DummyFabric {
  std::map<SocketAddress, DummyTransport*, ByName> ends;
};

class DummyTransport final : public transport::Transport {
 public:
  DummyTransport(const transport::TransportContext& context, DummyFabric& fabric)
      : context_(context), fabric_(fabric) {
    plug();
  }
  ~DummyTransport() override {
    unplug();
    for (const std::unique_ptr<transport::Peer>& peer : context_.peers.all()) peer->parts[slot()].reset();
  }
  void plug() { fabric_.ends[context_.name] = this; }
  /// The peers see that this end is gone.
  void unplug() {
    const auto found = fabric_.ends.find(context_.name);
    if (found != fabric_.ends.end() && found->second == this) fabric_.ends.erase(found);
  }

  const char* name() const override { return "dummy"; }
  transport::OpenResult open(transport::Peer& peer, std::string& reason) override {
    if (end_of(peer.name()) == nullptr) return transport::OpenResult::unreached;
    auto end = std::make_unique<End>(*this, peer);
    context_.reach.reached(peer, *this, end->carrier, kEagerMax);
    peer.parts[slot()] = std::move(end);
    reason = "a test says so";
    return transport::OpenResult::reached;
  }
  bool look_for(transport::Peer& peer) override {
    std::string reason;
    return open(peer, reason) == transport::OpenResult::reached;
  }
  void close(transport::Peer& peer) override {
    peer.parts[slot()].reset();
    std::erase_if(inbox_, [&](const Item& item) { return item.from == peer.name(); });
  }
  bool holds(const transport::Peer& peer) const override { return peer.parts[slot()] != nullptr; }

  bool receive(transport::Turn&) override {
    for (const std::unique_ptr<transport::Peer>& peer : context_.peers.all()) {
      if (holds(*peer) && end_of(peer->name()) == nullptr) context_.peers.mark_failed(*peer, Status::ended);
    }
    bool brought = take_in();
    if (!acked_.empty() && context_.messenger.acked(acked_)) {
      acked_.clear();
      brought = true;
    }
    return brought;
  }
  bool holding() const override { return !inbox_.empty(); }
  void receive_held(std::uint32_t) override { take_in(); }
  bool silent() const override { return inbox_.empty() && acked_.empty(); }
  bool wants_turn() const override { return !silent(); }
  bool prepare_sleep() override { return silent(); }

 private:
  static constexpr std::size_t kEagerMax = 16 * 1024;
  static constexpr std::size_t kSegmentMax = 4096;
  static constexpr std::size_t kItemsMax = 64;

  struct Item {
    SocketAddress from;
    wire::Segment segment;
    std::vector<std::byte> payload;
    carrier::Token token;
  };

  class Carrier final : public carrier::Carrier {
   public:
    Carrier(DummyTransport& owner, const SocketAddress& peer) : owner_(owner), peer_(peer) {}
    std::size_t payload_max(const wire::Segment&) const override { return kSegmentMax; }
    bool acked_on_post() const override { return false; }
    bool post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode,
              carrier::Token token) override {
      DummyTransport* const to = owner_.end_of(peer_);
      if (to == nullptr || to->inbox_.size() >= kItemsMax) return false;
      Item item{owner_.context_.name, segment, std::vector<std::byte>(payload.length), token};
      payload.copy_to(item.payload.data());
      to->inbox_.push_back(std::move(item));
      return true;
    }

   private:
    DummyTransport& owner_;
    const SocketAddress peer_;
  };

  struct End final : transport::TransportPeer {
    End(DummyTransport& owner, transport::Peer& peer) : carrier(owner, peer.name()) {}
    Carrier carrier;
  };

  DummyTransport* end_of(const SocketAddress& name) const {
    const auto found = fabric_.ends.find(name);
    return found != fabric_.ends.end() ? found->second : nullptr;
  }

  bool take_in() {
    bool brought = false;
    while (!inbox_.empty()) {
      transport::Peer& peer = context_.peers.find_or_add(inbox_.front().from);
      if (peer.failed) break;
      if (peer.channel.carrier == nullptr) {
        std::string reason;
        context_.reach.called(peer);
        if (open(peer, reason) != transport::OpenResult::reached) {
          inbox_.pop_front();
          continue;
        }
      }
      const wire::Segment& segment = inbox_.front().segment;
      protocol::Matcher& matcher = context_.messenger.matcher();
      if (!matcher.ready(peer.channel, segment) || !matcher.can_report()) break;
      const Item item = std::move(inbox_.front());
      inbox_.pop_front();
      transport::try_arrival(context_.peers, context_.admission, peer,
                             [&] { context_.messenger.arrive(peer.channel, item.segment, item.payload); });
      DummyTransport* const sender = end_of(item.from);
      if (item.token != 0 && sender != nullptr) sender->acked_.push_back(item.token);
      brought = true;
    }
    return brought;
  }

  const transport::TransportContext& context_;
  DummyFabric& fabric_;
  std::deque<Item> inbox_;
  std::vector<carrier::Token> acked_;
};

}  // namespace cluster::test
