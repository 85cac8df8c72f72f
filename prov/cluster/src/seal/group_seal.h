// Sealed frames by multicast: one sender, one group, any number of receivers, which the sender need not know.
//
//   frame header | GroupSealBlock | what the frame carries ... | SealTrailer
//
// The keys of a sender's frames to a group are made like those of a direction (association.h), with the group in the place of the
// receiver: of the job key, mode, cipher, a salt that the sender draws for this group, its name, and the group's address. Each
// frame carries the salt, so the frames of a sender open from the first one on, also for a member that joins late. The checksum field
// says which key of the job seals the frame, as in other frames.
//
// The key is the group's, not a member's: each process that has the job key can seal in the name of every member. A receiver cannot
// tell whether a frame is fresh, either: one that was recorded before it opened the group opens once. The group takes it only if stream
// and membership are those that its member has named over the flow between them.
//
// Invariants: a counter is sealed once. A frame opens once for a receiver of the group. Nothing is kept of frames that do not open, and the
// work for them is bounded.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/environment.h"
#include "link/multicast.h"
#include "seal/association.h"
#include "seal/job_key.h"

namespace cluster::seal {

/// Behind the header of a sealed frame of a group; never encrypted.
struct GroupSealBlock {
  std::uint8_t salt[16];
  std::uint8_t prefers_aes;  ///< 1: the cipher is AES-GCM, which the sender alone chooses
  std::uint8_t reserved[3];
};
static_assert(sizeof(GroupSealBlock) == 20);

/// What an endpoint seals for one group.
class GroupSender {
 public:
  GroupSender(const Credentials& credentials, const Party& ours, const SocketAddress& group, Random& random);

  Association& association() { return association_; }
  ConstBytes block() const { return as_bytes(&block_, sizeof block_); }

 private:
  GroupSender(const Credentials& credentials, const Party& sender, const SocketAddress& group);

  GroupSealBlock block_{};
  Association association_;
};

/// What an endpoint opens of one group. `trials`, the endpoint's, limits how often it makes keys for senders that it does not know,
/// which may be forged.
class GroupOpener {
 public:
  /// With that many senders, the one that has been silent longest gives way, if it has been silent for kSilent. Recorded frames of
  /// earlier processes open, too; they must not displace a living member, whose recorded frames would then open again. Members are
  /// never silent for that long.
  static constexpr std::size_t kSendersMax = 4096;
  static constexpr Duration kSilent = 10s;

  static constexpr int kTrialsAtOnce = 256;
  static constexpr Duration kTrialInterval = 100us;

  GroupOpener(const Credentials& credentials, const SocketAddress& group, std::shared_ptr<Allowance> trials)
      : credentials_(credentials), group_(group), trials_(std::move(trials)) {}

  /// `frame` is one whole frame with the flag kSealed. If it is genuine and new, this cuts out its block; the rest is a sealed frame
  /// whose trailer has been verified. Otherwise this counts the frame and returns nothing.
  Bytes open(Time now, Bytes frame, const SocketAddress& from, Counters& counters);
  std::size_t senders() const { return senders_.size(); }

 private:
  struct Name {
    SocketAddress sender;
    Salt salt;
    std::uint32_t id;  ///< sender_id()
    friend bool operator==(const Name&, const Name&) = default;
  };
  struct NameHash {
    std::size_t operator()(const Name& name) const { return name.sender.hash() ^ name.id; }
  };

  struct Sender {
    std::unique_ptr<Association> association;
    Time heard{};
  };

  bool make_space(Time now);
  Association::Verdict open_first(Time now, Bytes frame, const Name& name, const Party& sender);

  const Credentials credentials_;
  const SocketAddress group_;
  std::shared_ptr<Allowance> trials_;
  std::unordered_map<Name, Sender, NameHash> senders_;  ///< of which a frame has been opened
  Time full_until_{};                                   ///< none gives way before
};

/// What an endpoint with a key receives by multicast. Of what comes for a group it hands up only what a process with the key has sealed
/// for that group: once, and opened. SealedLink seals the other direction. To its user this is multicast that loses what is forged,
/// altered, replayed or not sealed at all.
class SealedGroups final : public link::MulticastJoiner {
 public:
  /// `name`: of this endpoint. Its own frames come as well, and are left out.
  SealedGroups(std::unique_ptr<link::MulticastJoiner> inner, Credentials credentials,
               const SocketAddress& name, const Environment& environment)
      : inner_(std::move(inner)),
        credentials_(std::move(credentials)),
        name_(name),
        environment_(environment) {}

  std::unique_ptr<link::MulticastReceiver> join(const SocketAddress& group,
                                                std::span<const SocketAddress> members,
                                                std::string& reason) override;

 private:
  std::unique_ptr<link::MulticastJoiner> inner_;
  const Credentials credentials_;
  const SocketAddress name_;
  Environment environment_;
  std::shared_ptr<Allowance> trials_ =
      std::make_shared<Allowance>(GroupOpener::kTrialInterval, GroupOpener::kTrialsAtOnce);
};

}  // namespace cluster::seal
