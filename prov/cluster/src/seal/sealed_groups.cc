#include "seal/sealed_groups.h"

#include <cstring>
#include <utility>

#include "link/arrival_walk.h"
#include "seal/first_frame.h"
#include "seal/group_seal.h"

namespace cluster::seal {
namespace {

class SealedReceiver final : public link::MulticastReceiver {
 public:
  SealedReceiver(std::unique_ptr<link::MulticastReceiver> inner, GroupOpener opener,
                 const SocketAddress& name, const Environment& environment,
                 const volatile std::uint32_t* same_process)
      : inner_(std::move(inner)),
        opener_(std::move(opener)),
        name_(name),
        environment_(environment),
        same_process_(same_process) {}

  /// As many as came, so that the caller knows whether something is left; those of which nothing opens are empty.
  std::size_t receive_burst(std::span<link::InFrame> frames) override {
    const std::size_t count = inner_->receive_burst(frames);
    const bool in_child = *same_process_ == 0;
    for (link::InFrame& frame : frames.first(count)) {
      frame.bytes = in_child || frame.from.to == name_ ? frame.bytes.first(0) : open_all(frame);
      frame.segment = 0;  // what has opened says itself how long it is
    }
    return count;
  }
  int descriptor() const override { return inner_->descriptor(); }

 private:
  /// The frames of one arrival that open, one behind the other where the first one lay.
  Bytes open_all(const link::InFrame& arrival) {
    std::size_t kept = 0;
    for (link::ArrivalWalk walk(arrival); !walk.done();) {
      const Bytes opened = open_next(walk, arrival.from.to);
      if (!opened.empty()) std::memmove(arrival.bytes.data() + kept, opened.data(), opened.size());
      kept += opened.size();
    }
    return arrival.bytes.first(kept);
  }

  /// Takes a frame off the front. Empty: it does not open.
  Bytes open_next(link::ArrivalWalk& walk, const SocketAddress& from) {
    Counters& counters = environment_.counters;
    wire::FrameHeader header;
    const Bytes frame = first_frame(walk.datagram(), header);
    const bool sealed = !frame.empty() && (header.flags & wire::frame_flag::kSealed) != 0;
    const Bytes opened =
        sealed ? opener_.open(environment_.clock.now(), frame, from, counters) : frame.first(0);
    if (!sealed) ++(frame.empty() ? counters.refused_malformed : counters.refused_unsealed);
    if (opened.empty()) ++counters.refused_multicast;
    if (frame.empty()) {
      walk.pass_datagram();
    } else if (opened.empty()) {
      walk.pass_refused(frame.size());
    } else {
      walk.pass(1, frame.size());
    }
    return opened;
  }

  std::unique_ptr<link::MulticastReceiver> inner_;
  GroupOpener opener_;
  const SocketAddress name_;
  Environment environment_;
  const volatile std::uint32_t* same_process_;
};

}  // namespace

std::unique_ptr<link::MulticastReceiver> SealedGroups::join(const SocketAddress& group,
                                                            std::span<const SocketAddress> members,
                                                            std::string& reason) {
  std::unique_ptr<link::MulticastReceiver> plain = inner_->join(group, members, reason);
  if (plain == nullptr) return nullptr;
  return std::make_unique<SealedReceiver>(std::move(plain),
                                          GroupOpener(credentials_, without_scope(group), trials_), name_,
                                          environment_, same_process_);
}

}  // namespace cluster::seal
