package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/client"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

func (a *app) imageCommands() *cobra.Command {
	return a.group("image", "What virtual machines are made from", a.imageList(), a.imageGet(), a.imageCreate(), a.imageImport(), a.imageUpdate(),
		a.imageState("deprecate", "Mark images as no longer recommended; they still work", hcp.ImageDeprecated),
		a.imageState("retire", "Take no new virtual machine from images", hcp.ImageRetired),
		a.imageState("activate", "Offer images again", hcp.ImageActive),
		a.deleteCommand("image", "Delete images; one in use is refused", "Its record goes; the artefacts on the clusters stay.", a.imageNames,
			func(ctx context.Context, o *client.Ops, name string, key client.CallOption) error {
				return o.DeleteImage(ctx, name, key)
			},
			example{"ask first", "image delete old"}, example{"in a script", "image delete old --yes"}))
}

func (a *app) imageList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List images", Args: a.wantArgs(0, 0, ""),
		Example: examples(example{"what is on offer", "image list"}, example{"with versions and sums, as JSON", "image list -o json"}),
		RunE: func(cmd *cobra.Command, _ []string) error {
			isOps, err := a.isOps()
			if err != nil {
				return err
			}
			if isOps {
				o, err := a.ops()
				if err != nil {
					return err
				}
				page, err := o.ListImages(cmd.Context())
				return listPage(a, "image", opsImageListing, page, err)
			}
			p, err := a.project()
			if err != nil {
				return err
			}
			page, err := p.ListImages(cmd.Context())
			return listPage(a, "image", imageListing, page, err)
		},
	}
}

func (a *app) imageGet() *cobra.Command {
	return &cobra.Command{
		Use: "get IMAGE...", Aliases: []string{"show"}, Short: "Show images", Args: a.wantArgs(1, -1, "image"),
		Example:           examples(example{"by name", "image get tiny"}, example{"the whole record", "image get tiny -o yaml"}),
		ValidArgsFunction: a.completeMany(a.imageNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			isOps, err := a.isOps()
			if err != nil {
				return err
			}
			if isOps {
				o, err := a.ops()
				if err != nil {
					return err
				}
				return getAll(cmd.Context(), a, "image", opsImageListing, args, o.GetImage)
			}
			p, err := a.project()
			if err != nil {
				return err
			}
			return getAll(cmd.Context(), a, "image", imageListing, args, p.GetImage)
		},
	}
}

func (a *app) imageCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make an image known (operators)", Args: a.wantArgs(1, 1, "name of the image"),
		Long: "Make a logical image known. Its bytes come to a cluster by image import, or are there already (--artefact with --cluster).",
		Example: examples(
			example{"the sum is taken from the file", "image create tiny --version 1 --file tiny.img"},
			example{"a cluster has it already", "image create tiny --version 1 --sha256 4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865 --cluster lab --artefact tiny-1"}),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	in := v1.CreateImage{}
	var file, firmware, cluster, artefact string
	cmd.Flags().StringVar(&in.Version, "version", "", "version (needed)")
	cmd.Flags().StringVar(&in.SHA256, "sha256", "", "sha256 of the image file (or --file)")
	cmd.Flags().StringVar(&file, "file", "", "take the sha256 of this file; it is not sent")
	cmd.Flags().StringVar(&firmware, "firmware", string(hcp.FirmwareBIOS), "bios or uefi")
	cmd.Flags().IntVar(&in.MinDiskGiB, "min-disk-gib", 0, "least disk")
	cmd.Flags().IntVar(&in.MinMemoryMiB, "min-memory-mib", 0, "least memory")
	cmd.Flags().StringVar(&cluster, "cluster", "", "cluster that has the artefact")
	cmd.Flags().StringVar(&artefact, "artefact", "", "the image's reference on that cluster")
	flag := keyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in.Name, in.Firmware = args[0], hcp.Firmware(firmware)
		switch {
		case in.Version == "":
			return usage("missing_flag", "hcpctl image create needs --version")
		case (in.SHA256 == "") == (file == ""):
			return usage("missing_flag", "hcpctl image create needs one of --sha256 and --file")
		case (cluster == "") != (artefact == ""):
			return usage("missing_flag", "--cluster and --artefact go together")
		}
		if file != "" {
			sum, err := sumOfFile(a.expandHome(file))
			if err != nil {
				return err
			}
			in.SHA256 = sum
		}
		o, err := a.ops()
		if err != nil {
			return err
		}
		key := a.key(flag)
		image, err := o.CreateImage(cmd.Context(), in, client.WithKey(key))
		if err == nil && cluster != "" {
			image, err = o.SetArtefact(cmd.Context(), string(image.ID), cluster, artefact, client.WithKey(key))
		}
		return changed(a, "image", in.Name, "create", key, opsImageListing, image, err)
	}
	return cmd
}

func sumOfFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", usage("unreadable", "the image file cannot be read: %v", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", usage("unreadable", "the image file cannot be read: %v", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (a *app) imageImport() *cobra.Command {
	cmd := &cobra.Command{
		Use: "import IMAGE", Aliases: []string{"upload"}, Short: "Bring an image file to a cluster (operators)", Args: a.wantArgs(1, 1, "image"),
		Long: "Stream an image file to a cluster. The server checks its sha256 against the image's while it passes.",
		Example: examples(example{"one cluster", "image import tiny --file tiny.img --cluster lab"},
			example{"as JSON", "image import tiny --file tiny.img --cluster lab -o json"}),
		ValidArgsFunction: a.completeOne(a.imageNames),
	}
	file := cmd.Flags().String("file", "", "image file (needed)")
	cluster := cmd.Flags().String("cluster", "", "cluster, by name, id or LRN (needed)")
	a.completeFlag(cmd, "cluster", a.clusterNames)
	flag := keyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, need := range []struct{ flag, value string }{{"file", *file}, {"cluster", *cluster}} {
			if need.value == "" {
				return usage("missing_flag", "hcpctl image import needs --%s", need.flag)
			}
		}
		f, err := os.Open(a.expandHome(*file))
		if err != nil {
			return usage("unreadable", "the image file cannot be read: %v", err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil || !info.Mode().IsRegular() {
			return usage("unreadable", "%s is not a regular file", *file)
		}
		o, err := a.ops()
		if err != nil {
			return err
		}
		key := a.key(flag)
		a.note("Sending %s, %d MiB.", *file, (info.Size()+1<<20-1)>>20)
		image, err := o.UploadArtefact(cmd.Context(), args[0], *cluster, f, info.Size(), client.WithKey(key))
		return changed(a, "image", args[0], "import", key, opsImageListing, image, err)
	}
	return cmd
}

func (a *app) imageState(verb, short string, state hcp.ImageState) *cobra.Command {
	return changeCommand(a, "image", verb, short+" (operators)", opsImageListing, a.imageNames,
		func(ctx context.Context, o *client.Ops, name string, key client.CallOption) (v1.OpsImage, error) {
			return o.UpdateImage(ctx, name, v1.UpdateImage{State: &state}, key)
		},
		example{"one image", "image " + verb + " tiny"}, example{"several", "image " + verb + " tiny old -o json"})
}
