// Frames by multicast between endpoints with a key: what a sender's link seals for a group, and what a receiver of the group takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "seal/group_seal.h"
#include "seal/sealed_link.h"
#include "support/fake_environment.h"
#include "support/recording_link.h"
#include "support/seal_keys.h"
#include "wire/admit.h"
#include "wire/frame.h"

namespace cluster::seal {
namespace {

using FrameBytes = std::vector<std::byte>;

constexpr std::string_view kGroupSecret = "0123456789abcdef";
constexpr std::string_view kOtherGroupSecret = "another key that";
constexpr std::string_view kWords = "what a member says to all the others";

SocketAddress address(const char (&ip)[5], std::uint16_t port) {
  return SocketAddress::v4(as_bytes(ip, 4).data(), port);
}
const SocketAddress kGroup = address("\xef\xc0\x01\x01", 7000);
const SocketAddress kOtherGroup = address("\xef\xc0\x01\x02", 7000);
const SocketAddress kSender = address("\x0a\0\0\x01", 5000);
const SocketAddress kReceiver = address("\x0a\0\0\x02", 5000);

/// A host's socket of a group, into which the test puts what arrives.
struct Arrivals {
  struct Arrival {
    SocketAddress from;
    FrameBytes bytes;
    std::size_t segment = 0;
  };
  std::vector<Arrival> waiting;
  std::vector<Arrival> handed_out;
};

class FakeReceiver final : public link::MulticastReceiver {
 public:
  explicit FakeReceiver(Arrivals& arrivals) : arrivals_(arrivals) {}
  std::size_t receive_burst(std::span<link::InFrame> frames) override {
    arrivals_.handed_out = std::exchange(arrivals_.waiting, {});
    EXPECT_LE(arrivals_.handed_out.size(), frames.size());
    for (std::size_t i = 0; i < arrivals_.handed_out.size(); ++i) {
      frames[i] = {.bytes = arrivals_.handed_out[i].bytes, .from = {.to = arrivals_.handed_out[i].from}};
      frames[i].segment = arrivals_.handed_out[i].segment;
    }
    return arrivals_.handed_out.size();
  }
  int descriptor() const override { return -1; }

 private:
  Arrivals& arrivals_;
};

class FakeJoiner final : public link::MulticastJoiner {
 public:
  explicit FakeJoiner(Arrivals& arrivals) : arrivals_(arrivals) {}
  std::unique_ptr<link::MulticastReceiver> join(const SocketAddress&, std::span<const SocketAddress>,
                                                std::string&) override {
    return std::make_unique<FakeReceiver>(arrivals_);
  }

 private:
  Arrivals& arrivals_;
};

FrameBytes bare_frame(std::string_view words, std::uint32_t sequence) {
  FrameBytes bytes(sizeof(wire::FrameHeader) + words.size());
  std::memcpy(bytes.data() + sizeof(wire::FrameHeader), words.data(), words.size());
  wire::FrameHeader& header = wire::header_at(bytes.data());
  header.kind = static_cast<std::uint8_t>(wire::FrameKind::group);
  header.flags = wire::frame_flag::kSequenced;
  header.session = 5;
  header.sequence = sequence;
  const ConstBytes whole(bytes);
  wire::encode_frame(header, {&whole, 1});
  return bytes;
}

template <typename Change>
void change_header(FrameBytes& frame, Change&& change) {
  wire::FrameHeader header;
  std::memcpy(&header, frame.data(), sizeof header);
  change(header);
  std::memcpy(frame.data(), &header, sizeof header);
}

class GroupEndpoint {
 public:
  GroupEndpoint(const SocketAddress& name, const Credentials& credentials, std::uint64_t seed,
                const SocketAddress& group = kGroup)
      : name_(name), group_{.to = group} {
    environment.random = test::FakeRandom(seed);
    auto recording = std::make_unique<test::RecordingLink>();
    recording_ = recording.get();
    link_ = std::make_unique<SealedLink>(std::move(recording), credentials, std::vector{name},
                                         environment.environment());
    groups_ = std::make_unique<SealedGroups>(std::make_unique<FakeJoiner>(arrivals_), credentials, name,
                                             environment.environment());
    std::string reason;
    receiver_ = groups_->join(group, {}, reason);
  }

  /// As it leaves by multicast.
  FrameBytes seal(std::string_view words = kWords, std::uint32_t sequence = 0) {
    const FrameBytes bytes = bare_frame(words, sequence);
    link::OutFrame frame;
    frame.path = &group_;
    frame.add(bytes);
    EXPECT_EQ(link_->send_burst({&frame, 1}), 1u);
    return std::exchange(recording_->frames, {}).at(0);
  }
  /// What its user gets of an arrival: the words of each frame.
  std::vector<std::string> receive(const SocketAddress& from, const FrameBytes& bytes,
                                   std::size_t segment = 0) {
    arrivals_.waiting.push_back({from, bytes, segment});
    std::array<link::InFrame, link::MulticastReceiver::kBurst> frames;
    EXPECT_EQ(receiver_->receive_burst(frames), 1u)
        << "as many as came, so that the caller knows whether there is more";
    std::vector<std::string> words;
    for (ConstBytes rest = frames[0].bytes; !rest.empty();) {
      wire::FrameView view;
      if (wire::admit(rest, view, wire::Integrity::seal) != wire::Refusal::none)
        return {"what the gate refuses"};
      words.emplace_back(reinterpret_cast<const char*>(view.segments.data()), view.segments.size());
      rest = rest.subspan(view.length);
    }
    return words;
  }
  bool takes(const SocketAddress& from, const FrameBytes& bytes) {
    return receive(from, bytes) == std::vector{std::string(kWords)};
  }
  void move(const SocketAddress& to) {
    link_->on_move([](std::uint8_t, const SocketAddress&) {});
    recording_->moved(0, to);
  }
  const Counters& counters() const { return environment.counters; }

  test::FakeEnvironment environment;

 private:
  SocketAddress name_;
  link::Path group_;
  test::RecordingLink* recording_ = nullptr;
  Arrivals arrivals_;
  std::unique_ptr<SealedLink> link_;
  std::unique_ptr<SealedGroups> groups_;
  std::unique_ptr<link::MulticastReceiver> receiver_;
};

class SealedGroupsTest : public ::testing::TestWithParam<Mode> {
 protected:
  Credentials keys(std::initializer_list<std::string_view> materials = {kGroupSecret}) const {
    return test::credentials(materials, GetParam());
  }
  GroupEndpoint sender{kSender, keys(), 1};
  GroupEndpoint receiver{kReceiver, keys(), 2};
};

INSTANTIATE_TEST_SUITE_P(Modes, SealedGroupsTest, ::testing::Values(Mode::auth, Mode::encrypt));

TEST_P(SealedGroupsTest, EachReceiverTakesWhatAMemberHasSealed) {
  GroupEndpoint third{address("\x0a\0\0\x03", 5000), keys(), 3};
  const FrameBytes sealed = sender.seal();
  EXPECT_TRUE(receiver.takes(kSender, sealed));
  EXPECT_TRUE(third.takes(kSender, sealed));
}

TEST_P(SealedGroupsTest, WhatItCarriesIsReadableInModeAuthAlone) {
  const FrameBytes sealed = sender.seal();
  const auto* const begin = reinterpret_cast<const std::byte*>(kWords.data());
  const bool readable =
      std::search(sealed.begin(), sealed.end(), begin, begin + kWords.size()) != sealed.end();
  EXPECT_EQ(readable, GetParam() == Mode::auth);
}

TEST_P(SealedGroupsTest, NoFrameIsTakenTwiceButARepairIsSealedAnew) {
  const FrameBytes sealed = sender.seal();
  const FrameBytes repair = sender.seal();
  EXPECT_NE(sealed, repair);
  EXPECT_TRUE(receiver.takes(kSender, repair));
  EXPECT_TRUE(receiver.takes(kSender, sealed)) << "overtaken, and new all the same";
  EXPECT_FALSE(receiver.takes(kSender, sealed));
  EXPECT_FALSE(receiver.takes(kSender, repair));
  EXPECT_EQ(receiver.counters().refused_replayed, 2u);
}

TEST_P(SealedGroupsTest, NoBitOfAFrameCanBeAltered) {
  const FrameBytes sealed = sender.seal();
  for (std::size_t at = 0; at < sealed.size(); ++at) {
    FrameBytes altered = sealed;
    altered[at] ^= std::byte{4};
    EXPECT_TRUE(receiver.receive(kSender, altered).empty()) << at;
    receiver.environment.clock.advance(1ms);
  }
  for (std::size_t size = 0; size < sealed.size(); ++size) {
    FrameBytes cut(sealed.begin(), sealed.begin() + static_cast<std::ptrdiff_t>(size));
    if (size >= sizeof(wire::FrameHeader))
      change_header(cut, [size](auto& header) { header.length = static_cast<std::uint16_t>(size); });
    if (size > 0) {
      EXPECT_TRUE(receiver.receive(kSender, cut).empty()) << size;
    }
    receiver.environment.clock.advance(1ms);
  }
  EXPECT_TRUE(receiver.takes(kSender, sealed)) << "forgers have moved nothing";
}

TEST_P(SealedGroupsTest, AForgedFrameInATrainTakesNoOtherWithIt) {
  for (const std::size_t said : {std::size_t{0}, std::size_t{48}, std::size_t{200}}) {
    for (std::size_t place = 0; place < 4; ++place) {
      FrameBytes train;
      FrameBytes frame;
      for (std::size_t i = 0; i < 4; ++i) {
        frame = sender.seal();
        if (i == place) {
          frame[frame.size() - 1] ^= std::byte{1};
          if (said != 0)
            change_header(frame, [said](auto& header) { header.length = static_cast<std::uint16_t>(said); });
        }
        train.insert(train.end(), frame.begin(), frame.end());
      }
      EXPECT_EQ(receiver.receive(kSender, train, frame.size()), std::vector(3, std::string(kWords)))
          << said << " at " << place;
      receiver.environment.clock.advance(1ms);
    }
  }
}

TEST_P(SealedGroupsTest, AFrameWithoutASealIsNeverTaken) {
  EXPECT_TRUE(receiver.receive(kSender, bare_frame(kWords, 0)).empty());
  EXPECT_EQ(receiver.counters().refused_unsealed, 1u);
  EXPECT_TRUE(receiver.takes(kSender, sender.seal()));
  EXPECT_TRUE(receiver.receive(kSender, bare_frame(kWords, 1)).empty()) << "nor of one that is known";
}

TEST_P(SealedGroupsTest, NorOneOfAnotherKeyModeGroupOrSender) {
  GroupEndpoint other_key{kSender, keys({kOtherGroupSecret}), 3};
  EXPECT_FALSE(receiver.takes(kSender, other_key.seal()));
  const Mode other = GetParam() == Mode::auth ? Mode::encrypt : Mode::auth;
  GroupEndpoint other_mode{kSender, test::credentials({kGroupSecret}, other), 4};
  EXPECT_FALSE(receiver.takes(kSender, other_mode.seal()));
  GroupEndpoint other_group{kSender, keys(), 5, kOtherGroup};
  EXPECT_FALSE(receiver.takes(kSender, other_group.seal()));
  EXPECT_FALSE(receiver.takes(address("\x0a\0\0\x03", 5000), sender.seal())) << "in another's name";
  EXPECT_EQ(receiver.counters().refused_forged, 4u);
  EXPECT_TRUE(receiver.receive(kReceiver, receiver.seal()).empty()) << "its own";
}

TEST_P(SealedGroupsTest, WhileAKeyIsChangedBothAreTaken) {
  GroupEndpoint old_first{kReceiver, keys({kGroupSecret, kOtherGroupSecret}), 3};
  GroupEndpoint new_first{kSender, keys({kOtherGroupSecret, kGroupSecret}), 4};
  EXPECT_TRUE(old_first.takes(kSender, new_first.seal()));
  EXPECT_TRUE(new_first.takes(kReceiver, old_first.seal()));
}

TEST_P(SealedGroupsTest, AFrameOfAnEarlierProcessOpensOnceAndItsKeyIsAnother) {
  GroupEndpoint earlier{kSender, keys(), 6};
  const FrameBytes recorded = earlier.seal();
  const FrameBytes now = sender.seal();
  EXPECT_NE(recorded, now) << "the first frame of each: a key and a nonce would have come twice";
  EXPECT_TRUE(receiver.takes(kSender, now));
  EXPECT_TRUE(receiver.takes(kSender, recorded)) << "Group knows the membership that it names";
  EXPECT_FALSE(receiver.takes(kSender, recorded));
}

TEST_P(SealedGroupsTest, WhatAForgerPutsBesideGenuineFramesIsLeftOut) {
  FrameBytes arrival;
  for (std::uint32_t i = 0; i < 3; ++i) {
    FrameBytes frame = sender.seal(kWords, i);
    if (i == 1) frame[40] ^= std::byte{1};
    arrival.insert(arrival.end(), frame.begin(), frame.end());
  }
  EXPECT_EQ(receiver.receive(kSender, arrival), (std::vector<std::string>(2, std::string(kWords))));
}

/// A receiver derives the key from the address from which the frame came.
TEST_P(SealedGroupsTest, WhatAMemberSealsAfterItsAddressWasReplacedOpens) {
  EXPECT_TRUE(receiver.takes(kSender, sender.seal()));
  const SocketAddress next = address("\x0a\0\0\x04", 5000);
  sender.move(next);
  EXPECT_TRUE(receiver.takes(next, sender.seal()));
  sender.move(kSender);
  EXPECT_TRUE(receiver.takes(kSender, sender.seal()));
}

/// The receiver makes keys for what it does not know: that has to be bounded.
TEST_P(SealedGroupsTest, ForgersMakeItTryFewKeys) {
  const FrameBytes sealed = sender.seal();
  FrameBytes forged = sealed;
  const KeyId id = keys().keys[0]->id();
  for (std::uint32_t i = 0; i < 1000; ++i) {
    Salt salt{};
    std::memcpy(salt.data(), &i, sizeof i);
    std::memcpy(forged.data() + sizeof(wire::FrameHeader), salt.data(), salt.size());
    change_header(forged, [&](auto& header) { header.checksum = sender_id(salt, id); });
    EXPECT_TRUE(receiver.receive(kSender, forged).empty());
  }
  EXPECT_FALSE(receiver.takes(kSender, sealed)) << "nothing is tried any more";
  receiver.environment.clock.advance(1ms);
  EXPECT_TRUE(receiver.takes(kSender, sealed)) << "nothing was marked, and later it is";
}

/// After so many frames the sender changes its key, and a receiver that joins then must find it. In one mode
/// only, since it takes a while and the other runs the same code.
class LateMemberTest : public SealedGroupsTest {};

INSTANTIATE_TEST_SUITE_P(Mode, LateMemberTest, ::testing::Values(Mode::auth));

TEST_P(LateMemberTest, BeginsAtAnyKey) {
  const Party ours{{1}, {kSender}, true};
  const Party group{{}, {kGroup}, true};
  Association outward(keys().keys[0], GetParam(), ours, group);
  GroupSealBlock block{{1}, 1, {}};
  const FrameBytes bare = bare_frame(kWords, 0);
  wire::FrameHeader header;
  std::memcpy(&header, bare.data(), sizeof header);
  header.length = static_cast<std::uint16_t>(bare.size() + sizeof block + sizeof(wire::SealTrailer));
  FrameBytes sealed;
  for (const ConstBytes piece :
       {as_bytes(&std::as_const(header), sizeof header), as_bytes(&std::as_const(block), sizeof block),
        ConstBytes(bare).subspan(sizeof header)}) {
    sealed.insert(sealed.end(), piece.begin(), piece.end());
  }
  sealed.resize(header.length);
  for (std::uint64_t i = 0; i <= Association::kFramesPerKey; ++i) outward.seal(sealed, sizeof block);
  EXPECT_TRUE(receiver.takes(kSender, sealed));
}

TEST_P(SealedGroupsTest, RecordedSendersMakeNoneForgottenThatHasJustBeenHeard) {
  const FrameBytes first = GroupEndpoint(kSender, keys(), 3).seal();
  EXPECT_TRUE(receiver.takes(kSender, first));
  for (std::size_t i = 0; i < GroupOpener::kSendersMax; ++i) {
    receiver.environment.clock.advance(GroupOpener::kTrialInterval);
    receiver.receive(kSender, GroupEndpoint(kSender, keys(), 100 + i).seal());
  }
  EXPECT_FALSE(receiver.takes(kSender, first)) << "it comes again";
  receiver.environment.clock.advance(GroupOpener::kSilent);
  EXPECT_TRUE(receiver.takes(kSender, GroupEndpoint(kSender, keys(), 4).seal()))
      << "one that is silent gives way";
}

}  // namespace
}  // namespace cluster::seal
