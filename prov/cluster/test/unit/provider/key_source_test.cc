// Which files and texts are valid keys; an error names its cause and never the key.
#include "provider/key_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>

namespace cluster::provider {
namespace {

constexpr const char* kKey = "00112233445566778899aabbccddeeff";
constexpr const char* kOther = "ffeeddccbbaa99887766554433221100";

class KeySourceTest : public ::testing::Test {
 protected:
  KeySourceTest() {
    std::string name = testing::TempDir() + "key_source_test.XXXXXX";
    directory_ = mkdtemp(name.data());
    file_ = directory_ + "/key";
  }
  ~KeySourceTest() override {
    unlink(file_.c_str());
    unlink((directory_ + "/link").c_str());
    rmdir(directory_.c_str());
  }
  void write(const std::string& text, mode_t mode = 0600) {
    unlink(file_.c_str());
    std::ofstream(file_) << text;
    chmod(file_.c_str(), mode);
  }
  KeyFindings find(const std::map<std::string, std::string>& values, ConstBytes auth_key = {}) {
    std::vector<std::string> errors;
    Options options(
        [&](const OptionRow& row) -> std::optional<std::string> {
          const auto found = values.find(row.name);
          return found == values.end() ? std::nullopt : std::optional(found->second);
        },
        errors);
    EXPECT_TRUE(errors.empty());
    return KeySource(options).find(auth_key);
  }
  void expect_error(const KeyFindings& findings, const std::string& words) {
    EXPECT_FALSE(findings.credentials.has_value());
    EXPECT_NE(findings.error.find(words), std::string::npos) << findings.error;
    EXPECT_EQ(findings.error.find("0011"), std::string::npos) << findings.error;
  }

  std::string directory_;
  std::string file_;
};

TEST_F(KeySourceTest, NoKeyIsNoError) {
  const KeyFindings findings = find({});
  EXPECT_FALSE(findings.credentials.has_value());
  EXPECT_EQ(findings.error, "");
}

TEST_F(KeySourceTest, AFileHoldsOneKeyOrTwo) {
  write("# the key of the cluster\n" + std::string(kKey) + "\n");
  const KeyFindings one = find({{"key_file", file_}});
  ASSERT_TRUE(one.credentials.has_value()) << one.error;
  EXPECT_EQ(one.credentials->keys.size(), 1u);
  EXPECT_EQ(one.credentials->mode, seal::Mode::auth);
  write(std::string(kOther) + "\n" + kKey + "\n");
  const KeyFindings two = find({{"key_file", file_}, {"security", "encrypt"}});
  ASSERT_TRUE(two.credentials.has_value()) << two.error;
  ASSERT_EQ(two.credentials->keys.size(), 2u);
  EXPECT_EQ(two.credentials->keys[1]->id(), one.credentials->keys[0]->id());
  EXPECT_EQ(two.credentials->mode, seal::Mode::encrypt);
}

TEST_F(KeySourceTest, TheSameDigitsAreTheSameKeyWhereverTheyStand) {
  write(kKey);
  const KeyFindings in_file = find({{"key_file", file_}});
  const KeyFindings in_environment = find({{"key", "00112233445566778899AABBCCDDEEFF"}});
  ASSERT_TRUE(in_file.credentials.has_value() && in_environment.credentials.has_value());
  EXPECT_EQ(in_file.credentials->keys[0]->id(), in_environment.credentials->keys[0]->id());
}

TEST_F(KeySourceTest, TheApplicationsKeyComesFirst) {
  const std::string material = "sixteen bytes...";
  const KeyFindings findings = find({{"key", kKey}}, as_bytes(material.data(), material.size()));
  ASSERT_TRUE(findings.credentials.has_value());
  EXPECT_NE(findings.credentials->keys[0]->id(), find({{"key", kKey}}).credentials->keys[0]->id());
}

TEST_F(KeySourceTest, FilesThatOthersReachAreRefused) {
  for (const mode_t mode : {0640, 0604, 0620, 0666}) {
    write(kKey, mode);
    expect_error(find({{"key_file", file_}}), "chmod 600");
  }
  write(kKey);
  ASSERT_EQ(symlink(file_.c_str(), (directory_ + "/link").c_str()), 0);
  expect_error(find({{"key_file", directory_ + "/link"}}), "symbolic link");
  expect_error(find({{"key_file", directory_}}), "not a regular file");
  expect_error(find({{"key_file", directory_ + "/none"}}), "No such file");
  expect_error(find({{"key_file", "/dev/null"}}), "not a regular file");
  if (geteuid() == 0) {
    ASSERT_EQ(chown(file_.c_str(), 1, 1), 0);
    expect_error(find({{"key_file", file_}}), "another user");
  }
}

TEST_F(KeySourceTest, WhatIsNoKeyIsRefused) {
  for (const std::string& text :
       {std::string(), std::string("\n\n"), std::string("# only a remark\n"), std::string("001122"),
        std::string(kKey) + "0", std::string(kKey) + "x0", std::string(130, '0'),
        std::string(kKey) + "\n" + kKey + "\n" + kOther, std::string(5000, '0')}) {
    write(text);
    const KeyFindings findings = find({{"key_file", file_}});
    EXPECT_FALSE(findings.credentials.has_value()) << text;
    EXPECT_NE(findings.error, "") << text;
    EXPECT_EQ(findings.error.find("0011"), std::string::npos) << findings.error;
  }
}

TEST_F(KeySourceTest, ProtectionThatIsDemandedNeedsAKey) {
  expect_error(find({{"security", "auth"}}), "FI_CLUSTER_SECURITY=auth demands a key");
  expect_error(find({{"security", "encrypt"}}), "FI_CLUSTER_SECURITY=encrypt demands a key");
}

/// The bytes, too, which are where they were: a string that is cleared keeps its memory.
TEST_F(KeySourceTest, TheTextOfAKeyIsGoneOnceItIsDerived) {
  std::vector<std::string> errors;
  Options options(
      [](const OptionRow& row) -> std::optional<std::string> {
        return row.kind == OptionKind::secret ? std::optional<std::string>(kKey) : std::nullopt;
      },
      errors);
  const std::string& text = options.text(Options::Name::key);
  const char* const bytes = text.data();
  const std::size_t size = text.size();
  ASSERT_EQ(size, std::string(kKey).size());
  KeySource source(options);
  const KeyFindings first = source.find({});
  ASSERT_TRUE(first.credentials.has_value()) << first.error;
  EXPECT_TRUE(text.empty());
  ASSERT_EQ(text.data(), bytes);
  EXPECT_TRUE(std::all_of(bytes, bytes + size, [](char c) { return c == 0; }));
  EXPECT_TRUE(options.from_user(Options::Name::key));
  const KeyFindings second = source.find({});
  ASSERT_TRUE(second.credentials.has_value()) << second.error;
  EXPECT_EQ(second.credentials->keys, first.credentials->keys);
}

TEST_F(KeySourceTest, TheTextOfAKeyThatAFileMakesUselessIsGone) {
  write(kOther);
  std::vector<std::string> errors;
  Options options(
      [this](const OptionRow& row) -> std::optional<std::string> {
        if (row.kind == OptionKind::secret) return kKey;
        return row.name == std::string("key_file") ? std::optional<std::string>(file_) : std::nullopt;
      },
      errors);
  KeySource source(options);
  const KeyFindings findings = source.find({});
  ASSERT_TRUE(findings.credentials.has_value()) << findings.error;
  EXPECT_EQ(findings.source, "FI_CLUSTER_KEY_FILE");
  EXPECT_TRUE(options.text(Options::Name::key).empty());
}

TEST_F(KeySourceTest, OptionsNeverShowAKey) {
  std::vector<std::string> errors;
  const Options options(
      [](const OptionRow& row) -> std::optional<std::string> {
        return row.kind == OptionKind::secret ? std::optional<std::string>(kKey) : std::nullopt;
      },
      errors);
  options.each([](const OptionRow& row, const std::string& value, bool) {
    if (row.kind == OptionKind::secret) {
      EXPECT_EQ(value, "(set)");
    }
  });
  EXPECT_EQ(options.text(Options::Name::key), kKey);
}

}  // namespace
}  // namespace cluster::provider
