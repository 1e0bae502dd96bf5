// The whole import: reuse, a cut, tampering, determinism, cancellation, what is stored and pruned.
#include "kit.hpp"

namespace rasupd::kit {
namespace {

std::vector<LayerBytes> three_layers() {
  return {plain_layer(tar(bootable())), plain_layer(tar({file("usr/a", "one")})),
          plain_layer(tar({file("usr/b", "two")}))};
}

TEST_F(ImportTest, CommitCarriesWhatStatusNeeds) {
  const ImageDocuments image = image_of(three_layers());
  const auto done = import(image);
  ASSERT_TRUE(done) << done.error().message;
  const Repo repo = open();
  EXPECT_EQ(**repo.metadata(done->commit, "ostree.manifest-digest"), image.manifest_digest.str());
  EXPECT_EQ(**repo.metadata(done->commit, "ostree.manifest"), image.manifest_bytes);
  EXPECT_EQ(**repo.metadata(done->commit, "ostree.container.image-config"), image.config_bytes);
  EXPECT_EQ(**repo.metadata(done->commit, "version"), "1.2");
  EXPECT_EQ(*repo.resolve("ostree/container/image/docker_3A__2F__2F_registry_2E_example/os_3A_1"),
            done->commit);
  const auto images = list_images(repo);
  ASSERT_TRUE(images);
  ASSERT_EQ(images->size(), 1u);
  EXPECT_EQ((*images)[0].ref_key, "docker://registry.example/os:1");
  EXPECT_EQ((*images)[0].layers, 3u);
  EXPECT_EQ((*images)[0].manifest_digest, image.manifest_digest.str());
  expect_fsck_clean();
}

TEST_F(ImportTest, SameManifestSameCommitWhateverTheThreads) {
  const ImageDocuments image = image_of(three_layers());
  const auto first = import(image, 1);
  ASSERT_TRUE(first);
  shell("rm -rf " + repo_path + " && ostree init --mode=bare --repo=" + repo_path);
  const auto second = import(image, 3);
  ASSERT_TRUE(second);
  EXPECT_EQ(first->commit, second->commit);
  EXPECT_EQ(fetched, 6);
}

TEST_F(ImportTest, AnImportedImageIsNotFetchedAgainUnderAnotherTag) {
  const auto first = import(image_of(three_layers()));
  ASSERT_TRUE(first);
  fetched = 0;
  const auto again = import(image_of(three_layers(), "2"));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->commit, first->commit);
  EXPECT_EQ(fetched, 0);
  EXPECT_EQ(list_images(open())->size(), 2u);
}

TEST_F(ImportTest, OnlyMissingLayersAreFetched) {
  ASSERT_TRUE(import(image_of(three_layers())));
  auto layers = three_layers();
  layers[2] = plain_layer(tar({file("usr/b", "three!")}));
  const ImageDocuments next = image_of(layers);
  const auto plan = plan_import(open(), next.manifest, next.config);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->present, 2u);
  EXPECT_EQ(plan->needed, 1u);
  EXPECT_EQ(plan->bytes_needed, layers[2].blob.size());
  EXPECT_EQ(plan->bytes_present, layers[0].blob.size() + layers[1].blob.size());
  fetched = 0;
  const auto done = import(next);
  ASSERT_TRUE(done);
  EXPECT_EQ(fetched, 1);
  EXPECT_EQ(cat(done->commit, "/usr/b"), "three!");
}

TEST_F(ImportTest, ALayerIsKnownByItsContentWhateverTheCompression) {
  ASSERT_TRUE(import(image_of(three_layers())));
  auto layers = three_layers();
  spill(directory + "/l", layers[1].plain);
  shell("gzip -k " + directory + "/l");
  layers[1].blob = slurp(directory + "/l.gz");
  layers[1].media_type = "application/vnd.oci.image.layer.v1.tar+gzip";
  const ImageDocuments next = image_of(layers);
  EXPECT_EQ(plan_import(open(), next.manifest, next.config)->needed, 0u);
}

TEST_F(ImportTest, AForeignLayerRefIsACacheMiss) {
  const auto layers = three_layers();
  const ImageDocuments image = image_of(layers);
  shell("mkdir -p " + directory + "/bad/usr && echo evil > " + directory + "/bad/usr/a");
  int status = 0;
  const std::string said =
      shell("ostree commit --repo=" + repo_path + " -b ostree/container/blob/" +
                escape_ref(image.manifest.layers[1].digest.str()) + " --tree=dir=" + directory + "/bad",
            &status);
  ASSERT_EQ(status, 0) << said;
  const auto done = import(image);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(fetched, 3);
  EXPECT_EQ(cat(done->commit, "/usr/a"), "one");
}

// R106: a tampering registry, then an honest one.
TEST_F(ImportTest, ATamperedLayerLeavesNoRefAndHarmsNoLaterImport) {
  const ImageDocuments image = image_of(three_layers());
  const std::string digest = image.manifest.layers[1].digest.str();
  const std::string honest = blobs[digest];
  blobs[digest] = tar({file("usr/a", "evil")});
  const auto bad = import(image, 1);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().kind, Kind::Untrusted);
  EXPECT_NE(bad.error().message.find(digest), std::string::npos) << bad.error().message;
  EXPECT_TRUE(open().list_refs("ostree/container/image/")->empty());
  EXPECT_FALSE(open().resolve("ostree/container/blob/" + escape_ref(digest))->has_value());
  EXPECT_EQ(open().list_refs("ostree/container/blob/")->size(), 1u) << "the verified layer before it stays";
  blobs[digest] = honest;
  fetched = 0;
  const auto good = import(image);
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_EQ(fetched, 2);
  EXPECT_EQ(cat(good->commit, "/usr/a"), "one");
  expect_fsck_clean();
}

TEST_F(ImportTest, AReaderThatFailsAtItsEndLeavesNoRef) {
  const ImageDocuments image = image_of({plain_layer(tar(bootable()))});
  Repo repo = open();
  const Fetch fetch = [&](const Descriptor& layer) -> Result<Reader> {
    const Reader honest = reader_of(blobs.at(layer.digest.str()));
    return Reader([honest](std::span<std::byte> out) -> Result<std::size_t> {
      const std::size_t n = TRY(honest(out));
      if (n == 0) return fail(Kind::Untrusted, "not its digest");
      return n;
    });
  };
  const World w = world();
  const auto done = import_with(w, repo, fetch, image, *plan_import(repo, image.manifest, image.config), {});
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("not its digest"), std::string::npos);
  EXPECT_TRUE(open().list_refs("")->empty());
}

TEST_F(ImportTest, AStopKeepsVerifiedLayers) {
  const ImageDocuments image = image_of(three_layers());
  Repo repo = open();
  const Fetch fetch = [&](const Descriptor& layer) -> Result<Reader> {
    if (++fetched == 3) stop.request_stop();
    return reader_of(blobs.at(layer.digest.str()));
  };
  const World w = world();
  const auto done = import_with(w, repo, fetch, image, *plan_import(repo, image.manifest, image.config), {1});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, Kind::Cancelled);
  EXPECT_EQ(open().list_refs("")->size(), 2u);
}

TEST_F(ImportTest, OneErrorStopsTheOtherWorkers) {
  const ImageDocuments image = image_of(three_layers());
  Repo repo = open();
  const Fetch fetch = [&](const Descriptor&) -> Result<Reader> { return fail(Kind::Offline, "no route"); };
  const World w = world();
  const auto done = import_with(w, repo, fetch, image, *plan_import(repo, image.manifest, image.config), {3});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, Kind::Offline);
}

TEST_F(ImportTest, ARepeatedLayerIsFetchedOnce) {
  auto layers = three_layers();
  layers.push_back(layers[1]);
  const ImageDocuments image = image_of(layers);
  ASSERT_TRUE(import(image));
  EXPECT_EQ(fetched, 3);
}

TEST_F(ImportTest, ProgressIsThinAndEndsComplete) {
  ASSERT_TRUE(import(image_of(three_layers())));
  ASSERT_FALSE(progress.events.empty());
  EXPECT_LE(progress.events.size(), 2u) << "the clock of the test stands still: one event and the last";
  const ProgressEvent& last = progress.events.back();
  EXPECT_EQ(last.task, "pulling");
  EXPECT_EQ(last.bytes, last.bytes_total);
  ASSERT_EQ(last.subtasks.size(), 3u);
  for (const Subtask& task : last.subtasks) EXPECT_TRUE(task.completed);
}

TEST_F(ImportTest, NotBootableNamesTheRule) {
  const auto refused = [&](const std::vector<Entry>& entries, const std::string& word) {
    const auto done = import(image_of({plain_layer(tar(entries))}));
    ASSERT_FALSE(done) << word;
    EXPECT_EQ(done.error().kind, Kind::Unsuitable);
    EXPECT_NE(done.error().message.find(word), std::string::npos) << done.error().message;
    EXPECT_TRUE(open().list_refs("ostree/container/image/")->empty());
  };
  const Entry kernel = file("usr/lib/modules/6/vmlinuz"), initramfs = file("usr/lib/modules/6/initramfs.img");
  refused({dir("sysroot"), dir("usr")}, "/usr/lib/modules");
  refused({dir("sysroot"), dir("usr/lib/modules/6")}, "vmlinuz");
  refused({dir("sysroot"), kernel}, "initramfs.img");
  refused({dir("sysroot"), kernel, file("usr/lib/modules/6/initramfs.img", "")}, "initramfs.img");
  refused({dir("sysroot"), initramfs, file("usr/lib/modules/6/vmlinuz", "")}, "vmlinuz");
  refused({kernel, initramfs}, "/sysroot");
  refused({dir("sysroot"), kernel, initramfs, file("boot/vmlinuz")}, "/boot");
  refused({dir("sysroot"), kernel, initramfs, file("usr/lib/modules/7/vmlinuz"),
           file("usr/lib/modules/7/initramfs.img")},
          "two kernels");
  const auto good =
      import(image_of({plain_layer(tar({dir("sysroot"), kernel, initramfs, dir("usr/lib/modules/7")}))}));
  ASSERT_TRUE(good) << good.error().message;
  const auto found = find_kernel(open(), good->commit);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->version, "6");
  EXPECT_EQ(found->bytes, 2u);
}

TEST_F(ImportTest, LabelsThatMakeAnImageBootable) {
  ImageConfig config;
  EXPECT_EQ(check_bootable_label(config).error().kind, Kind::Unsuitable);
  config.labels["ostree.bootable"] = "true";
  EXPECT_TRUE(check_bootable_label(config));
}

TEST_F(ImportTest, SpaceNamesPlaceNeedAndFree) {
  const ImageDocuments image = image_of(three_layers());
  const auto plan = plan_import(open(), image.manifest, image.config);
  EXPECT_TRUE(check_space(*plan, repo_path, 0));
  const auto full = check_space(*plan, repo_path, std::uint64_t{1} << 60);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().kind, Kind::NoSpace);
  EXPECT_NE(full.error().message.find(repo_path), std::string::npos);
}

TEST_F(ImportTest, VarIsUnpackedOnceWithOwnerAndMode) {
  const auto done = import_layers({{dir("var", 0711, 1, 2), dir("var/lib/x", 0750, 3, 4),
                                    file("var/lib/x/f", "data", 04600), symlink("var/l", "lib")}});
  ASSERT_TRUE(done);
  const std::string var = directory + "/sysroot-var";
  const auto unpacked = unpack_var(open(), done->commit, var);
  ASSERT_TRUE(unpacked) << unpacked.error().message;
  EXPECT_TRUE(*unpacked);
  EXPECT_EQ(shell("stat -c '%a %u %g' " + var + " " + var + "/lib/x " + var + "/lib/x/f"),
            "711 1 2\n750 3 4\n4600 0 0\n");
  EXPECT_EQ(slurp(var + "/lib/x/f"), "data");
  EXPECT_EQ(shell("readlink " + var + "/l"), "lib\n");
  EXPECT_FALSE(unpack_var(open(), done->commit, var)) << "never into a directory that has something";
}

TEST_F(ImportTest, PruneDropsWhatNoKeptCommitNeeds) {
  const auto old_image = import(image_of(three_layers()));
  auto layers = three_layers();
  layers[2] = plain_layer(tar({file("usr/b", "three!")}));
  const auto new_image = import(image_of(layers, "2"));
  ASSERT_TRUE(old_image && new_image);
  Repo repo = open();
  const auto counted = prune_images(repo, {new_image->commit}, true);
  ASSERT_TRUE(counted);
  EXPECT_EQ(counted->images, 1u);
  EXPECT_EQ(counted->layers, 1u);
  EXPECT_EQ(repo.list_refs("")->size(), 6u) << "a dry run changes nothing";
  const auto pruned = prune_images(repo, {new_image->commit}, false);
  ASSERT_TRUE(pruned) << pruned.error().message;
  EXPECT_GT(pruned->objects, 0u);
  EXPECT_FALSE(*repo.has_commit(old_image->commit));
  EXPECT_TRUE(*repo.has_commit(new_image->commit));
  EXPECT_EQ(repo.list_refs("ostree/container/blob/")->size(), 3u);
  EXPECT_EQ(cat(new_image->commit, "/usr/b"), "three!");
  expect_fsck_clean();
}

TEST_F(ImportTest, PruneKeepsOnDoubt) {
  ASSERT_TRUE(import(image_of(three_layers())));
  shell("mkdir -p " + directory + "/t && ostree commit --repo=" + repo_path +
        " --orphan --tree=dir=" + directory + "/t > " + directory + "/c");
  std::string foreign = slurp(directory + "/c");
  foreign.resize(64);
  Repo repo = open();
  const auto pruned = prune_images(repo, {foreign}, false);
  ASSERT_TRUE(pruned) << pruned.error().message;
  EXPECT_EQ(pruned->images, 1u);
  EXPECT_EQ(pruned->layers, 0u) << "a kept commit without a manifest keeps every layer";
  EXPECT_TRUE(*repo.has_commit(foreign)) << "kept though no ref names it";
}

TEST(RefNames, AreOstreeExts) {
  EXPECT_EQ(escape_ref("sha256:ab"), "sha256_3A_ab");
  EXPECT_EQ(escape_ref("docker://quay.io/a_b/c-d:1"), "docker_3A__2F__2F_quay_2E_io/a__b/c-d_3A_1");
  for (const char* text :
       {"docker://h:5000/a/b:1@sha256:ff", "oci:/srv/x_y", "_", "__", "a_3A_b", "oci:/x/"}) {
    EXPECT_EQ(unescape_ref(escape_ref(text)), text);
  }
}

}  // namespace
}  // namespace rasupd::kit
