"""Writes tests/pictures: small PNG and JPEG files, and what transformers makes of them.

Each row of cases.json has a picture, a preprocessor_config.json, the folder of tests/published with the model, some of
the pixel_values that the class of the processor makes of the picture with Pillow, and the model's logits. As in the
pipelines of transformers, load_image reads the pictures.

    python3 -m pip install torch transformers==5.24.0 pillow==13.0.0
    python3 tests/pictures/draw.py
"""
import json
import os

os.environ["HF_HUB_OFFLINE"] = "1"
import numpy
import torch
import transformers as t
from PIL import Image, PngImagePlugin
from transformers.image_utils import load_image
from transformers.models.deit.image_processing_pil_deit import DeiTImageProcessorPil
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

torch.set_num_threads(1)
HERE = os.path.dirname(os.path.abspath(__file__))
KEPT = 16  # numbers of pixel_values that are kept, at equal distances
MODELS = {"vit_colour": t.ViTForImageClassification, "deit": t.DeiTForImageClassification,
          "deit_teacher": t.DeiTForImageClassificationWithTeacher}


def pixels(height, width, channels):
    y, x = numpy.mgrid[0:height, 0:width]
    waves = [127 + 120 * numpy.sin(x / (2 + i) + y / (4 - i) + i) for i in range(channels)]
    return numpy.stack(waves, -1).astype(numpy.uint8)


def write_pictures():
    def save(name, picture, **options):
        picture.save(os.path.join(HERE, name), **options)

    rgb = Image.fromarray(pixels(23, 17, 3))
    save("colour.png", rgb)
    save("small.png", Image.fromarray(pixels(8, 12, 3)))
    save("tall.png", Image.fromarray(pixels(40, 9, 3)))
    save("grey.png", Image.fromarray(pixels(11, 14, 1)[..., 0]))
    save("lines.png", Image.fromarray(pixels(12, 12, 1)[..., 0]).convert("1"))
    save("palette.png", rgb.quantize(16), transparency=3)
    save("transparent.png", Image.fromarray(pixels(15, 15, 4)))
    gamma = PngImagePlugin.PngInfo()
    gamma.add(b"gAMA", (100000).to_bytes(4, "big"))
    save("gamma.png", rgb, pnginfo=gamma)
    save("deep.png", Image.fromarray(pixels(8, 12, 1)[..., 0].astype(numpy.uint16) * 257))
    xmp = PngImagePlugin.PngInfo()
    xmp.add_itxt("XML:com.adobe.xmp", '<x tiff:Orientation="3"/>')
    save("turned_3.png", rgb, pnginfo=xmp)
    save("plain.jpg", rgb, quality=90)
    save("grey.jpg", Image.fromarray(pixels(16, 16, 1)[..., 0]))
    save("cmyk.jpg", rgb.convert("CMYK"))
    for orientation in range(2, 9):
        exif = Image.Exif()
        exif[0x112] = orientation
        save(f"turned_{orientation}" + (".png" if orientation == 5 else ".jpg"), rgb, exif=exif.tobytes())


VIT = {"size": {"height": 8, "width": 12}}
DEIT = {"size": 11, "crop_size": 8}
PICTURES = ["tall.png", "grey.png", "lines.png", "palette.png", "transparent.png", "gamma.png", "plain.jpg", "grey.jpg",
            "turned_2.jpg", "turned_3.jpg", "turned_3.png", "turned_4.jpg", "turned_5.png", "turned_6.jpg",
            "turned_7.jpg", "turned_8.jpg"]
# Pictures, models and keys of preprocessor_config.json.
ROWS = [(picture, "vit_colour", VIT) for picture in PICTURES] + [
    ("small.png", "vit_colour", VIT),
    ("small.png", "vit_colour", {"do_resize": False}),
    ("small.png", "vit_colour", {"do_resize": False, "size": 9, "do_convert_rgb": True}),
    *[("colour.png", "vit_colour", {**VIT, "resample": number}) for number in range(1, 6)],
    *[("tall.png", "deit", {**DEIT, "resample": number}) for number in range(1, 6)],
    ("colour.png", "vit_colour", {"size": [8, 12], "image_mean": [0.485, 0.456, 0.406],
                                  "image_std": [0.229, 0.224, 0.225]}),
    ("colour.png", "vit_colour", {**VIT, "do_rescale": False, "image_mean": 120.0, "image_std": 60.0}),
    ("colour.png", "vit_colour", {**VIT, "rescale_factor": 0.0078, "do_normalize": False}),
    ("colour.png", "vit_colour", {"do_resize": True, "do_center_crop": None, "crop_size": None, **VIT, "do_normalize": None}),
    ("colour.png", "vit_colour", {"size": {"shortest_edge": 12}, "do_center_crop": True,
                                  "crop_size": {"height": 8, "width": 12}}),
    ("colour.png", "vit_colour", {"size": 13, "default_to_square": False, "do_center_crop": True, "crop_size": [8, 12]}),
    ("colour.png", "vit_colour", {"image_processor_type": "DeiTImageProcessor", "size": 14, "crop_size": [8, 12]}),
    ("colour.png", "deit", DEIT),
    ("plain.jpg", "deit", {"feature_extractor_type": "DeiTFeatureExtractor", **DEIT}),
    ("colour.png", "deit", {**DEIT, "do_center_crop": False, "size": 8}),
    ("colour.png", "deit", {"image_processor_type": "ViTImageProcessorFast", "size": 8}),
    ("colour.png", "deit_teacher", DEIT),
]


def case(picture, name, config):
    folder = os.path.join(HERE, "..", "published", name)
    model = MODELS[name].from_pretrained(folder, attn_implementation="eager").eval()
    kind = config.get("image_processor_type", config.get("feature_extractor_type", name))
    processor = (DeiTImageProcessorPil if kind.lower().startswith("deit") else ViTImageProcessorPil).from_dict(config)
    inputs = processor(load_image(os.path.join(HERE, picture)), return_tensors="pt")
    values = inputs["pixel_values"][0].permute(1, 2, 0).flatten().tolist()
    with torch.no_grad():
        logits = model(**inputs).logits[0].tolist()
    return {"picture": picture, "model": name, "config": config, "count": len(values),
            "pixels": [round(values[i * len(values) // KEPT], 6) for i in range(KEPT)],
            "logits": [round(value, 6) for value in logits]}


def main():
    write_pictures()
    with open(os.path.join(HERE, "cases.json"), "w") as file:
        file.write("[" + ",\n".join(json.dumps(case(*row)) for row in ROWS) + "]\n")


main()
