#include "seal/sealed_groups.h"

#include <cstring>
#include <utility>

#include "seal/group_seal.h"

namespace cluster::seal {
namespace {

class SealedReceiver final : public link::MulticastReceiver {
 public:
  SealedReceiver(std::unique_ptr<link::MulticastReceiver> inner, GroupOpener opener, const SocketAddress& name,
                 const Environment& environment, const volatile std::uint32_t* same_process)
      : inner_(std::move(inner)), opener_(std::move(opener)), name_(name), environment_(environment), same_process_(same_process) {}

  /// As many as came, so that the caller knows whether something is left; those of which nothing opens are empty.
  std::size_t receive_burst(std::span<link::InFrame> frames) override {
    const std::size_t count = inner_->receive_burst(frames);
    const bool in_child = *same_process_ == 0;
    for (link::InFrame& frame : frames.first(count)) {
      frame.bytes = in_child || frame.from.to == name_ ? frame.bytes.first(0) : open_all(frame);
    }
    return count;
  }
  int descriptor() const override { return inner_->descriptor(); }

 private:
  /// The frames of one arrival that open, one behind the other where the first one lay.
  Bytes open_all(const link::InFrame& arrival) {
    Bytes rest = arrival.bytes;
    std::size_t kept = 0;
    while (!rest.empty()) {
      const Bytes opened = open_next(rest, arrival.from.to);
      if (opened.empty()) ++environment_.counters.refused_multicast;
      std::memmove(arrival.bytes.data() + kept, opened.data(), opened.size());
      kept += opened.size();
    }
    return arrival.bytes.first(kept);
  }

  /// Takes a frame off the front of `rest`. Nothing that was not verified says where the next one begins, except that it lies
  /// within this arrival.
  Bytes open_next(Bytes& rest, const SocketAddress& from) {
    Counters& counters = environment_.counters;
    wire::FrameHeader header;
    const bool whole = rest.size() >= sizeof header;
    if (whole) std::memcpy(&header, rest.data(), sizeof header);
    if (!whole || header.magic != wire::kMagic || header.version != wire::kVersion || header.length < sizeof header ||
        header.length > rest.size()) {
      ++counters.refused_malformed;
      return std::exchange(rest, {}).first(0);
    }
    const Bytes frame = rest.first(header.length);
    rest = rest.subspan(frame.size());
    if ((header.flags & wire::frame_flag::kSealed) != 0) return opener_.open(environment_.clock.now(), frame, from, counters);
    ++counters.refused_unsealed;
    return frame.first(0);
  }

  std::unique_ptr<link::MulticastReceiver> inner_;
  GroupOpener opener_;
  const SocketAddress name_;
  Environment environment_;
  const volatile std::uint32_t* same_process_;
};

}  // namespace

std::unique_ptr<link::MulticastReceiver> SealedGroups::join(const SocketAddress& group, std::span<const SocketAddress> members,
                                                            std::string& reason) {
  std::unique_ptr<link::MulticastReceiver> plain = inner_->join(group, members, reason);
  if (plain == nullptr) return nullptr;
  return std::make_unique<SealedReceiver>(std::move(plain), GroupOpener(credentials_, without_scope(group), trials_), name_, environment_,
                                          same_process_);
}

}  // namespace cluster::seal
